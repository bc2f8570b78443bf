"""Which keys of the settings are unknown, and what was probably meant; where a secret may stand.

Values are checked by the types in ``settings``, not here.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel

from hermes.hermes_cli.key_names import ABSENT_INSIDE, ABSENT_KEYS, ABSENT_PARTS, MEANT
from hermes.hermes_cli.settings import Settings

_SECRET = re.compile(
    r"(?:^|[_.-])(?:key|token|secret|password|passwd|credentials?|cookie|authorization|dsn)s?$"
    r"|apikey$|database_url$|(?:^|\.)headers\.",
    re.IGNORECASE,
)
_ENDPOINT = re.compile(r"(?:providers\.[^.]+|fallback_providers\.\d+)\.(?=[^.]+$)")
_NEAR = 0.72


def key_warnings(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each unknown key, and one with all keys of parts that are absent."""
    absent: list[str] = []
    for path in _unknown(raw, Settings, ""):
        meant = nearest_key(path)
        if _is_absent(path, meant):
            absent.append(path)
            continue
        hint = f"did you mean {meant}?" if meant else "it has no effect."
        yield f"config.yaml: unknown key {path}; {hint}"
    if absent:
        yield (
            "config.yaml: these keys belong to parts that this version does not have and have no "
            f"effect: {', '.join(sorted(absent))}."
        )


def _is_absent(path: str, meant: str) -> bool:
    if path in ABSENT_PARTS or path in ABSENT_KEYS:
        return True
    return not meant and path.startswith(ABSENT_INSIDE)


def _unknown(raw: Mapping[str, Any], model: type[BaseModel], prefix: str) -> Iterator[str]:
    for key, value in raw.items():
        field = model.model_fields.get(key)
        if field is None:
            yield f"{prefix}{key}"
        else:
            yield from _inside(value, field.annotation, f"{prefix}{key}")


def _inside(value: Any, annotation: Any, path: str) -> Iterator[str]:
    model = _section(annotation)
    if model is not None and isinstance(value, Mapping):
        yield from _unknown(cast("Mapping[str, Any]", value), model, f"{path}.")
        return
    origin = get_origin(annotation)
    if origin is dict and isinstance(value, Mapping):
        inner = get_args(annotation)[1]
        for key, item in cast("Mapping[str, Any]", value).items():
            yield from _inside(item, inner, f"{path}.{key}")
    elif origin is list and isinstance(value, list):
        inner = get_args(annotation)[0]
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _inside(item, inner, f"{path}.{index}")


def _section(annotation: Any) -> type[BaseModel] | None:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return cast("type[BaseModel]", annotation) if is_model else None


def is_known_key(key: Sequence[str]) -> bool:
    """Whether a setting or a section stands at ``key`` (its steps)."""
    annotation: Any = Settings
    for step in key:
        model = _section(annotation)
        if model is not None:
            if step not in model.model_fields:
                return False
            annotation = model.model_fields[step].annotation
        elif get_origin(annotation) is dict:
            annotation = get_args(annotation)[1]
        elif get_origin(annotation) is list and step.isdecimal():
            annotation = get_args(annotation)[0]
        elif annotation is not Any:
            return False
    return True


def nearest_key(path: str) -> str:
    """Return the dotted key that was probably meant by an unknown one, "" for none."""
    endpoint = _ENDPOINT.match(path)
    prefix = endpoint[0] if endpoint else ""
    usual = path.replace(prefix, "model.", 1) if prefix else path
    if usual in MEANT:
        return MEANT[usual].replace("model.", prefix, 1) if prefix else MEANT[usual]
    parent, _, name = path.rpartition(".")
    siblings = _fields_at(parent.split(".") if parent else [])
    near = difflib.get_close_matches(name, siblings, n=1, cutoff=_NEAR)
    if near:
        return f"{parent}.{near[0]}" if parent else near[0]
    same = [key for key in known_keys() if key.rpartition(".")[2] == name]
    return same[0] if len(same) == 1 else ""


def _fields_at(key: Sequence[str]) -> list[str]:
    annotation: Any = Settings
    for step in key:
        model = _section(annotation)
        if model is not None and step in model.model_fields:
            annotation = model.model_fields[step].annotation
        elif get_origin(annotation) in (dict, list):
            annotation = get_args(annotation)[-1]
        else:
            return []
    model = _section(annotation)
    return list(model.model_fields) if model is not None else []


def known_keys(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    """Yield every dotted key that can be set, in the order of the types."""
    for name, field in model.model_fields.items():
        inner = _section(field.annotation)
        if inner is None:
            yield f"{prefix}{name}"
        else:
            yield from known_keys(inner, f"{prefix}{name}.")


def is_secret(path: str) -> bool:
    """Whether the value at a dotted key, or in a variable, is one that nobody may read."""
    return path != "key_env" and not path.endswith(".key_env") and bool(_SECRET.search(path))
