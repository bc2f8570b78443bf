"""Other ways in which people write the settings, brought to the one that ``settings`` knows.

These are the short forms and the spellings of the public agent. Nothing is checked here.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

Raw: TypeAlias = dict[str, Any]

_ENDPOINT_SPELLINGS = {
    "url": "base_url",
    "api": "base_url",
    "api_key_env": "key_env",
    "default_model": "model",
    "transport": "api_mode",
    "default_headers": "headers",
    "extra_headers": "headers",
    "max_output_tokens": "max_tokens",
    "request_timeout_seconds": "whole_answer_timeout",
    "timeout_seconds": "whole_answer_timeout",
    "stale_timeout_seconds": "stall_timeout",
}


def normalised(raw: Mapping[str, Any]) -> Raw:
    """Return the settings in their usual spelling, without keys that hold nothing."""
    values = cast("Raw", _without_nothing(raw))
    _adopt_platforms(values)
    _adopt_model(values)
    _adopt_custom_providers(values)
    _adopt_fallbacks(values)
    for place in endpoint_places(values):
        _respell(place)
    return values


def _without_nothing(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {key: _without_nothing(item) for key, item in items if item is not None}
    if isinstance(value, list):
        return [_without_nothing(item) for item in cast("list[Any]", value) if item is not None]
    return value


def endpoint_places(values: Raw) -> list[Raw]:
    """Return every mapping of the settings that describes an endpoint."""
    candidates: list[Any] = [values.get("model")]
    providers = values.get("providers")
    if isinstance(providers, dict):
        candidates += cast("Raw", providers).values()
    fallbacks = values.get("fallback_providers")
    if isinstance(fallbacks, list):
        candidates += cast("list[Any]", fallbacks)
    return [cast("Raw", place) for place in candidates if isinstance(place, dict)]


def _respell(place: Raw) -> None:
    for spelling, name in _ENDPOINT_SPELLINGS.items():
        if spelling in place:
            value = place.pop(spelling)
            known = place.setdefault(name, value)
            if isinstance(known, dict) and isinstance(value, dict):
                place[name] = {**cast("Raw", known), **cast("Raw", value)}
    models = place.get("models")
    if isinstance(models, list):
        names = cast("list[Any]", models)
        place["models"] = {str(name): {} for name in names if isinstance(name, str)}
    if isinstance(place.get("models"), dict):
        for inner in cast("Raw", place["models"]).values():
            if isinstance(inner, dict):
                _respell(cast("Raw", inner))


def _adopt_platforms(values: Raw) -> None:
    gateway = values.get("gateway")
    if not isinstance(gateway, dict):
        return
    inner = cast("Raw", gateway).pop("platforms", None)
    if isinstance(inner, dict):
        outer = values.get("platforms")
        upper = cast("Raw", outer) if isinstance(outer, dict) else {}
        values["platforms"] = merged(cast("Raw", inner), upper)


def merged(lower: Raw, upper: Raw) -> Raw:
    """Return ``lower`` with ``upper`` laid over it, mapping by mapping."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            result[key] = merged(cast("Raw", below), cast("Raw", value))
        else:
            result[key] = value
    return result


def _adopt_model(values: Raw) -> None:
    model = values.get("model")
    if isinstance(model, str):
        values["model"] = {"default": model} if model.strip() else {}
    elif isinstance(model, dict):
        entry = cast("Raw", model)
        for spelling in ("model", "name"):
            if spelling in entry:
                entry.setdefault("default", entry[spelling])
                del entry[spelling]


def _adopt_custom_providers(values: Raw) -> None:
    entries = values.get("custom_providers")
    if not isinstance(entries, list):
        return
    del values["custom_providers"]
    providers = values.setdefault("providers", {})
    for entry in cast("list[Any]", entries):
        if isinstance(entry, dict) and isinstance(providers, dict):
            place = dict(cast("Raw", entry))
            name = str(place.pop("name", "") or "custom")
            cast("Raw", providers).setdefault(name, place)


def _adopt_fallbacks(values: Raw) -> None:
    single = values.pop("fallback_model", None)
    listed = values.get("fallback_providers")
    if isinstance(listed, dict):
        values["fallback_providers"] = [cast("Raw", listed)]
    elif not listed and single is not None:
        values["fallback_providers"] = [cast("Raw", single)] if isinstance(single, dict) else single


def each_text(value: Any, change: Callable[[str, str], Any], place: str = "") -> Any:
    """Return ``value`` with ``change(text, place)`` in place of every text inside it.

    ``place`` is the dotted key; a change to None takes the key or item out.
    """
    if isinstance(value, str):
        return change(value, place)
    if isinstance(value, dict):
        result: Raw = {}
        for key, item in cast("Raw", value).items():
            changed = each_text(item, change, f"{place}.{key}" if place else key)
            if changed is not None:
                result[key] = changed
        return result
    if isinstance(value, list):
        items = [
            each_text(item, change, f"{place}.{index}")
            for index, item in enumerate(cast("list[Any]", value))
        ]
        return [item for item in items if item is not None]
    return value
