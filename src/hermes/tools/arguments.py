"""A tool call's arguments: from the model's text to a checked object.

Broken text is never repaired and never replaced by an empty object; only a value whose type is
plainly a slip of the model (``"10"`` for an integer) is put right.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from hermes.messages import JsonObject, ToolSpec
from hermes.tools.base import ToolFailure

_log = logging.getLogger(__name__)

MAX_ARGUMENTS = 8_000_000
"""Longest arguments text that is read, in characters."""

_SHOWN_VALUE = 80
_NUMBERS: dict[str, tuple[re.Pattern[str], Callable[[str], float]]] = {
    "integer": (re.compile(r"[-+]?[0-9]{1,18}"), int),
    "number": (re.compile(r"[-+]?[0-9]{1,18}(\.[0-9]{1,18})?"), float),
}


class ArgumentError(ToolFailure):
    """The arguments cannot be used; the message tells the model what is wrong."""


def read_arguments(text: str, spec: ToolSpec) -> dict[str, Any]:
    """Parse the text of a call's arguments; the schema is not applied yet.

    Text without a character counts as an empty object when nothing is required.

    Raises:
        ArgumentError: the text is not exactly one JSON object.
    """
    if not text.strip():
        required = _required(spec.parameters)
        if required:
            raise ArgumentError(f"The arguments are empty; required: {', '.join(required)}.")
        return {}
    if len(text) > MAX_ARGUMENTS:
        raise ArgumentError(f"The arguments are too long ({len(text):,} characters).")
    try:
        value: object = json.loads(
            text, strict=False, object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise ArgumentError(_explain(text, error)) from error
    except RecursionError as error:
        raise ArgumentError("The arguments are nested too deeply.") from error
    except ValueError as error:
        raise ArgumentError(f"The arguments are not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        found = _json_type(value)
        raise ArgumentError(f"The arguments must be one JSON object, but they are {found}.")
    if "\\ud" in text.lower() or not _is_encodable(text):
        _refuse_surrogates(cast("object", value))
    return cast("dict[str, Any]", value)


def settle_types(arguments: dict[str, Any], schema: JsonObject) -> dict[str, Any]:
    """Return the arguments with plain slips of type put right, one level deep.

    A number or boolean written as a string, an object or array written as JSON text, an integer
    written as ``10.0``, and ``null`` for an optional property are slips where the schema allows
    only the other type.
    """
    rules = schema.get("properties")
    properties = cast("Mapping[str, Any]", rules if isinstance(rules, Mapping) else {})
    required = _required(schema)
    settled: dict[str, Any] = {}
    for name, value in arguments.items():
        rule = properties.get(name)
        kind = cast("Mapping[str, Any]", rule).get("type") if isinstance(rule, Mapping) else None
        if value is None and isinstance(kind, str) and kind != "null" and name not in required:
            continue
        settled[name] = _settle(value, kind) if isinstance(kind, str) else value
    return settled


def _required(schema: JsonObject) -> tuple[str, ...]:
    names = schema.get("required")
    return tuple(cast("list[str]", names)) if isinstance(names, list | tuple) else ()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return result


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _explain(text: str, error: json.JSONDecodeError) -> str:
    """Say what is wrong with the text, naming the usual causes apart."""
    rest = text.rstrip()
    place = f"line {error.lineno}, column {error.colno}"
    if error.msg == "Extra data":
        return (
            f"The arguments hold more than one JSON value (the second at {place}). "
            "Make one call for each."
        )
    if error.pos >= len(rest) or error.msg.startswith("Unterminated string"):
        return (
            f"The arguments were cut off after {len(text):,} characters; the tool was not run. "
            "Send the whole JSON object again, in smaller pieces if it is long."
        )
    return f"The arguments are not valid JSON: {error.msg} at {place}: {text[error.pos]!r}."


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "an array"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_surrogates(value: object) -> None:
    """Refuse half of a surrogate pair anywhere: it could be neither written nor sent."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str) and not _is_encodable(item):
            raise ArgumentError(
                "The arguments hold half of a surrogate pair (\\ud800 to \\udfff alone). "
                "Write the character itself."
            )
        if isinstance(item, dict):
            for name, inner in cast("dict[object, object]", item).items():
                waiting += (name, inner)
        elif isinstance(item, list):
            waiting += cast("list[object]", item)


def _settle(value: Any, kind: str) -> Any:
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if kind in _NUMBERS:
        pattern, convert = _NUMBERS[kind]
        return convert(text) if pattern.fullmatch(text) else value
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, value)
    if kind in ("array", "object"):
        return _settle_json(value, list if kind == "array" else dict)
    return value


def _settle_json(text: str, wanted: type) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, wanted) else text
