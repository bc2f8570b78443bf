"""What is wrong with values of the settings, in words: key, what is expected, what is there.

No value of a text is ever repeated: it may be a secret that stands in the wrong place.
"""

from collections.abc import Mapping
from typing import Any, cast

import pydantic

from hermes.hermes_cli.yaml_file import kind_of

UNUSABLE = "unusable"
"""The type of a mistake whose context holds the steps of its ``place`` and the whole ``reason``."""

_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "value_error": "a number",
}


def describe(error: pydantic.ValidationError, names: Mapping[tuple[str, ...], str]) -> str:
    """Return all mistakes in one line; ``names`` gives the variable or option a key came from."""
    return "; ".join(mistakes(error, names).values())


def mistakes(
    error: pydantic.ValidationError, names: Mapping[tuple[str, ...], str]
) -> dict[tuple[str, ...], str]:
    """Return the text of each mistake by the steps of its key."""
    found: dict[tuple[str, ...], str] = {}
    for item in error.errors(include_url=False):
        context = item.get("ctx") or {}
        steps = tuple(str(step) for step in context.get("place", item["loc"]))
        key = ".".join(steps)
        if steps in names:
            key = f"{names[steps]} ({key})"
        if item["type"] == UNUSABLE:
            found[steps] = f"{key}: {context['reason']}"
            continue
        found[steps] = f"{key} must be {_expected(item)}, but holds {_found(item['input'])}"
    return found


def _expected(item: Any) -> str:
    context = cast("dict[str, Any]", item.get("ctx") or {})
    match item["type"]:
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "less_than":
            return f"less than {context['lt']}"
        case "literal_error":
            choices = str(context["expected"]).removeprefix("'', ")
            return f"one of {choices}"
        case kind:
            return _EXPECTED.get(kind, f"right ({item['msg']})")


def _found(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {value}"
    if isinstance(value, bool):
        return str(value).lower()
    return kind_of(value)
