"""The check of plain schemas against the library for all schemas."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.messages import ToolSpec
from hermes.tools.schema_check import compile_check, explain, is_plain

_NAMES = st.sampled_from(["a", "b", "c"])
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.5, 1.0, -2.5, 3.0])
    | st.text("xy", max_size=3)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)


def _schemas(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    types = ["object", "array", "string", "boolean", "number", "integer", "null"]
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(types),
            "properties": st.dictionaries(_NAMES, inner, max_size=3),
            "required": st.lists(_NAMES, unique=True, max_size=2),
            "additionalProperties": st.booleans(),
            "items": inner,
            "enum": st.lists(st.text("xy", max_size=2), min_size=1, max_size=3, unique=True),
            "minimum": st.integers(-3, 3),
            "maximum": st.integers(-3, 3),
            "minLength": st.integers(0, 3),
            "description": st.just("words"),
        },
    )


@settings(max_examples=150, deadline=None)
@given(schema=st.recursive(_schemas(st.just({})), _schemas, max_leaves=6), value=_VALUES)
def test_a_plain_schema_is_judged_as_the_library_does(schema: dict[str, Any], value: Any) -> None:
    assert is_plain(schema)
    spec = ToolSpec(name="t", description="", parameters=schema)
    library = jsonschema.Draft202012Validator(schema)

    ours = compile_check(spec)(value)

    theirs = {(tuple(e.absolute_path), e.validator) for e in library.iter_errors(value)}
    assert {(violation.path, violation.keyword) for violation in ours} == theirs
    if ours:
        assert explain(spec, ours).startswith("Wrong arguments for t: ")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/a"},
        {"anyOf": [{}]},
        {"properties": {"a": {"pattern": "x"}}},
        {"properties": []},
        {"required": "a"},
        {"items": True},
        {"enum": [1]},
        {"minimum": "1"},
        {"additionalProperties": {}},
        {"type": "nonsense"},
    ],
)
def test_any_other_schema_is_left_to_the_library(schema: dict[str, Any]) -> None:
    assert not is_plain(schema)


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": ["string", "null"]}, 1, "expected string or null, got 1."),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "not valid under any"),
        ({"properties": {"a": {"type": "string", "pattern": "^x"}}}, {"a": "y"}, "a: 'y' does not"),
        ({"additionalProperties": {"type": "string"}}, {"z": 1}, "z: expected string, got 1."),
        ({"enum": [1, "x"]}, 2, 'expected one of 1, "x", got 2.'),
        ({"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"minimum": 3}}}, [4, 1], "[1]: expected"),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "missing a. (1 more"),
    ],
)
def test_a_foreign_schema_is_explained_too(schema: dict[str, Any], value: Any, told: str) -> None:
    spec = ToolSpec(name="t", description="", parameters=schema)

    assert told in explain(spec, compile_check(spec)(value))
