"""Whether arguments fit a tool's schema, and in words why not.

Schemas of a few plain keywords, as our own tools have, are checked right here; any other is
``jsonschema``'s affair. Nothing is put right and no document is fetched.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from hermes.messages import JsonObject, ToolSpec
from hermes.redaction import excerpt

_log = logging.getLogger(__name__)

_SHOWN_VALUE = 80
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": (int, float),
    "null": type(None),
}
_IGNORED = frozenset({"description", "title", "default", "examples"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One place where a value breaks a keyword of its schema."""

    path: tuple[str | int, ...]
    keyword: str
    schema: JsonObject
    value: Any
    message: str = ""


Check: TypeAlias = Callable[[JsonObject], Sequence[Violation]]
"""Returns what is wrong with a call's arguments, the most telling first."""


def is_plain(schema: JsonObject) -> bool:
    """Whether a schema, to its depth, has only keywords that are checked here."""
    return all(
        keyword in _IGNORED or (keyword in _PLAIN and _PLAIN[keyword](value))
        for keyword, value in schema.items()
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, str) for item in cast("Sequence[Any]", value)
    )


def _is_plain_schema(value: Any) -> bool:
    return isinstance(value, Mapping) and is_plain(cast("JsonObject", value))


def _are_plain_schemas(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        map(_is_plain_schema, cast("Mapping[str, Any]", value).values())
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "type": lambda value: isinstance(value, str) and value in _TYPES,
    "properties": _are_plain_schemas,
    "required": _are_texts,
    "additionalProperties": lambda value: isinstance(value, bool),
    "items": _is_plain_schema,
    "enum": _are_texts,
    "minimum": _is_number,
    "maximum": _is_number,
    "minLength": lambda value: isinstance(value, int) and _is_number(value),
}
"""The keywords that are checked here, each with the shape that its value must have."""


def compile_check(spec: ToolSpec) -> Check:
    """Return the check of a tool's arguments.

    A schema that is itself wrong (a foreign tool's) is logged and checks nothing: the tool must
    judge for itself.
    """
    if is_plain(spec.parameters):
        return lambda arguments: list(_violations(arguments, spec.parameters, ()))
    return _compile_foreign(spec)


def explain(spec: ToolSpec, violations: Sequence[Violation]) -> str:
    """Tell the model the first violation: the place and what is expected there."""
    others = len(violations) - 1
    more = f" ({others} more to put right.)" if others else ""
    return f"Wrong arguments for {spec.name}: {_describe(violations[0])}{more}"


def _violations(value: Any, schema: JsonObject, path: tuple[str | int, ...]) -> Iterator[Violation]:
    for keyword in _broken(value, schema):
        yield Violation(path=path, keyword=keyword, schema=schema, value=value)
    if isinstance(value, dict):
        for name, rule in schema.get("properties", {}).items():
            if name in value:
                yield from _violations(value[name], rule, (*path, name))
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _violations(item, schema["items"], (*path, index))


def _broken(value: Any, schema: JsonObject) -> Iterator[str]:
    """Yield the keywords that a value breaks by itself, without what is inside it."""
    kind = schema.get("type")
    if kind is not None and not _is_of(value, kind):
        yield "type"
    if "enum" in schema and value not in schema["enum"]:
        yield "enum"
    if _is_of(value, "number"):
        if value < schema.get("minimum", value):
            yield "minimum"
        if value > schema.get("maximum", value):
            yield "maximum"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield "minLength"
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value)
        if any(name not in value for name in schema.get("required", ())):
            yield "required"
        if schema.get("additionalProperties") is False and _unknown(value, schema):
            yield "additionalProperties"


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _compile_foreign(spec: ToolSpec) -> Check:
    # Costs 0.1 s and 8 MB, which a server with plain schemas need not spend.
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator_class = jsonschema.Draft202012Validator
    try:
        validator_class.check_schema(spec.parameters)
    except jsonschema.SchemaError as error:
        _log.warning("tool %s has an invalid schema and goes unchecked: %s", spec.name, error)
        return lambda _arguments: ()
    validator: Any = validator_class(spec.parameters, registry=Registry())

    def check(arguments: JsonObject) -> Sequence[Violation]:
        try:
            errors: list[Any] = sorted(
                validator.iter_errors(arguments), key=lambda error: len(error.absolute_path)
            )
        except (Unresolvable, re.error, RecursionError) as error:
            _log.warning("the schema of tool %s cannot be applied: %s", spec.name, error)
            return ()
        return [_foreign(error) for error in errors]

    return check


def _foreign(error: Any) -> Violation:
    """Translate ``jsonschema``'s error."""
    schema: Any = error.schema
    return Violation(
        path=tuple(error.absolute_path),
        keyword=str(error.validator),
        schema=cast("JsonObject", schema) if isinstance(schema, Mapping) else {},
        value=error.instance,
        message=str(error.message),
    )


def _describe(violation: Violation) -> str:
    """Name the place and what is expected there."""
    path = _path(violation.path)
    where = f"{path}: " if path else ""
    schema, value = violation.schema, violation.value
    match violation.keyword:
        case "required":
            missing = [name for name in schema["required"] if name not in value]
            return f"{where}missing {', '.join(missing)}."
        case "additionalProperties" if "properties" in schema:
            unknown = excerpt(", ".join(_unknown(value, schema)), 200)
            return f"{where}unknown {unknown}; allowed: {', '.join(schema['properties'])}."
        case "type":
            kinds = schema["type"]
            wanted = kinds if isinstance(kinds, str) else " or ".join(kinds)
        case "enum":
            wanted = f"one of {', '.join(map(_show, schema['enum']))}"
        case "minimum":
            wanted = f"at least {schema['minimum']}"
        case "maximum":
            wanted = f"at most {schema['maximum']}"
        case "minLength":
            wanted = f"at least {schema['minLength']} characters"
        case _:
            return f"{where}{excerpt(violation.message or violation.keyword, 300)}."
    return f"{where}expected {wanted}, got {_show(value)}."


def _unknown(value: Mapping[str, Any], schema: JsonObject) -> list[str]:
    return [name for name in value if name not in schema.get("properties", {})]


def _path(parts: Iterable[str | int]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _show(value: object) -> str:
    return excerpt(json.dumps(value, ensure_ascii=False, default=str), _SHOWN_VALUE)
