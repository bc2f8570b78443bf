"""Broken argument texts: each is an error result that says what is wrong, and no tool runs."""

import logging

import pytest

from hermes.messages import JsonObject, ToolCall, ToolResult, ToolSpec
from hermes.tools.base import FunctionTool, ToolContext
from hermes.tools.toolbox import Toolbox

_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
        "deep": {
            "type": "object",
            "properties": {"list": {"type": "array", "items": {"type": "integer"}}},
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}

BROKEN = [
    pytest.param("", "path", id="empty"),
    pytest.param("  \n\t", "path", id="only white space"),
    pytest.param("{", "cut off", id="opened only"),
    pytest.param('{"path": "a", "conte', "cut off", id="cut in a key"),
    pytest.param('{"path": "a', "cut off", id="cut in a value"),
    pytest.param('{"path": "a\\', "cut off", id="cut in an escape"),
    pytest.param('{"path": "a"', "cut off", id="cut before the brace"),
    pytest.param('{"path":', "cut off", id="cut before a value"),
    pytest.param('{"path": "a"}{"path": "b"}', "more than one", id="two calls glued"),
    pytest.param('{"path": "a"}}', "more than one", id="one brace too many"),
    pytest.param('{"path": "a"} trailing', "more than one", id="words behind"),
    pytest.param("{}{}", "more than one", id="two empty objects"),
    pytest.param("null", "null", id="null"),
    pytest.param("[]", "an array", id="array"),
    pytest.param('["path", "a"]', "an array", id="array of words"),
    pytest.param('"path"', "a string", id="string"),
    pytest.param('"{\\"path\\": \\"a\\"}"', "a string", id="object written as a string"),
    pytest.param("7", "a number", id="number"),
    pytest.param("true", "a boolean", id="boolean"),
    pytest.param("path=a", "not valid JSON", id="shell words"),
    pytest.param("{'path': 'a'}", "not valid JSON", id="single quotes"),
    pytest.param('{path: "a"}', "not valid JSON", id="bare key"),
    pytest.param('{"path": "a",}', "not valid JSON", id="trailing comma"),
    pytest.param('{"path": None}', "not valid JSON", id="Python none"),
    pytest.param('{"path": undefined}', "not valid JSON", id="undefined"),
    pytest.param('```json\n{"path": "a"}\n```', "not valid JSON", id="code fence"),
    pytest.param("<path>a</path>", "not valid JSON", id="markup"),
    pytest.param('\ufeff{"path": "a"}', "not valid JSON", id="byte order mark"),
    pytest.param('{"path": "a", "count": NaN}', "NaN", id="not a number"),
    pytest.param('{"path": "a", "count": -Infinity}', "Infinity", id="infinity"),
    pytest.param('{"path": "a", "path": "b"}', "twice", id="key twice"),
    pytest.param('{"path": "\\ud83d"}', "surrogate", id="escaped half of a pair"),
    pytest.param('{"path": "\ud83d"}', "surrogate", id="raw half of a pair"),
    pytest.param('{"\\udc00": 1, "path": "a"}', "surrogate", id="half of a pair in a key"),
    pytest.param('{"path": ' + "[" * 100_000, "nested too deeply", id="nesting bomb"),
    pytest.param('{"path": "a", "count": ' + "9" * 5000 + "}", "not valid JSON", id="huge number"),
    pytest.param('{"path": "' + "a" * 8_000_001 + '"}', "too long", id="too long"),
    pytest.param("{}", "missing path", id="required missing"),
    pytest.param('{"path": null}', "path: expected string", id="required null"),
    pytest.param('{"path": ["a"]}', "path: expected string", id="wrong type"),
    pytest.param('{"path": "a", "count": "many"}', "count: expected integer", id="word for number"),
    pytest.param('{"path": "a", "count": 1.5}', "count: expected integer", id="fraction"),
    pytest.param(
        '{"path": "a", "count": true}', "count: expected integer", id="boolean for number"
    ),
    pytest.param('{"path": "a", "count": 0}', "at least 1", id="below the minimum"),
    pytest.param('{"path": "a", "count": 10}', "at most 9", id="above the maximum"),
    pytest.param('{"path": "a", "mode": "medium"}', '"fast"', id="not in the enumeration"),
    pytest.param('{"path": "a", "Path": "b"}', "unknown Path", id="unknown key"),
    pytest.param('{"path": "a", "deep": {"list": [1, "x"]}}', "deep.list[1]", id="deep inside"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("text", "told"), BROKEN)
async def test_broken_arguments_are_told_and_never_run(
    text: str, told: str, context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[JsonObject] = []

    async def note(arguments: JsonObject, _context: ToolContext) -> str:
        ran.append(arguments)
        return "done"

    spec = ToolSpec(name="note", description="", parameters=_SCHEMA)
    box = Toolbox([FunctionTool(spec=spec, function=note)])
    call = ToolCall(id="c1", name="note", arguments=text)

    with caplog.at_level(logging.ERROR):
        result = await box.run(call, context)

    assert isinstance(box.parse(call), ToolResult)
    assert (result.call_id, result.name, result.is_error) == ("c1", "note", True)
    assert told in result.text
    assert len(result.text) < 500
    assert ran == []
    assert caplog.records == []


SLIPS = [
    ('{"path": "a", "count": "3"}', {"path": "a", "count": 3}),
    ('{"path": "a", "count": 3.0}', {"path": "a", "count": 3}),
    ('{"path": "a", "count": null}', {"path": "a"}),
    ('{"path": "a", "deep": "{\\"list\\": [1]}"}', {"path": "a", "deep": {"list": [1]}}),
    ('{"path": "7"}', {"path": "7"}),
    ('{"path": "a\nb"}', {"path": "a\nb"}),
    ('{"path": "\\ud83d\\ude00"}', {"path": "😀"}),
    (' {"path": "a"} \n', {"path": "a"}),
]


@pytest.mark.parametrize(("text", "arguments"), SLIPS)
def test_plain_slips_are_put_right(text: str, arguments: JsonObject) -> None:
    async def note(_arguments: JsonObject, _context: ToolContext) -> str:
        return "done"

    spec = ToolSpec(name="note", description="", parameters=_SCHEMA)
    box = Toolbox([FunctionTool(spec=spec, function=note)])

    parsed = box.parse(ToolCall(id="c1", name="note", arguments=text))

    assert parsed == arguments
    assert not isinstance(parsed, ToolResult)
    assert all(type(parsed[name]) is type(value) for name, value in arguments.items())
