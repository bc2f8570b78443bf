"""The routing data: what is offered, what the schema allows, what an answer means."""

import json

import jsonschema
import pytest

from hermes.messages import ToolSpec
from hermes.providers.local_prompts import (
    ROUTED_TOOLS,
    Route,
    offered,
    read_route,
    route_request,
)
from hermes.tools.registry import build_toolbox

BY_NAME = {tool.name: tool for tool in ROUTED_TOOLS}


def spec(name: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> ToolSpec:
    properties = {key: {"type": "string"} for key in (*required, *optional)}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, description="", parameters=parameters)


def schema_of(*names: str, may_reply: bool = True) -> dict:
    tools = [BY_NAME[name] for name in names]
    request = route_request(ROUTED_TOOLS, tools, "hi", may_reply=may_reply)
    assert request.options.response_format is not None
    return request.options.response_format["json_schema"]["schema"]


def allowed(answer: dict, schema: dict) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(answer)


def test_only_tools_of_the_request_whose_arguments_fit_are_offered() -> None:
    specs = [
        spec("read_file", ("path",), ("offset",)),
        spec("terminal", ("command", "host")),
        spec("current_time", ("zone",)),
        spec("browse", ("url",)),
    ]

    assert [tool.name for tool in offered(specs)] == ["read_file"]


def test_our_own_tools_fit_their_examples() -> None:
    specs = build_toolbox(("hermes-api-server",)).specs

    assert [tool.name for tool in offered(specs)] == [tool.name for tool in ROUTED_TOOLS]


def test_at_most_five_tools_are_ever_offered() -> None:
    assert len(ROUTED_TOOLS) <= 5


def test_the_schema_allows_the_examples_and_nothing_beside_them() -> None:
    schema = schema_of("read_file", "current_time")

    assert allowed({"tool": "reply", "arguments": {}}, schema)
    assert allowed({"tool": "read_file", "arguments": {"path": "x"}}, schema)
    assert not allowed({"tool": "terminal", "arguments": {"command": "ls"}}, schema)
    assert not allowed({"tool": "read_file", "arguments": {}}, schema)
    assert not allowed({"tool": "read_file", "arguments": {"path": "x", "mode": "w"}}, schema)
    assert not allowed({"tool": "reply", "arguments": {}}, schema_of("terminal", may_reply=False))


def test_every_example_answer_is_one_that_the_schema_allows() -> None:
    schema = schema_of(*BY_NAME)
    messages = route_request(ROUTED_TOOLS, ROUTED_TOOLS, "hi").messages
    answers = [json.loads(entry.text) for entry in messages if entry.role == "assistant"]

    assert {answer["tool"] for answer in answers} == {"reply", *BY_NAME}
    assert all(allowed(answer, schema) for answer in answers)
    assert [entry.role for entry in messages[1:-1]] == ["user", "assistant"] * len(answers)


def test_examples_of_tools_that_are_not_offered_are_not_shown() -> None:
    tools = (BY_NAME["current_time"],)
    text = "".join(entry.text for entry in route_request(tools, tools, "hi").messages)

    assert "read_file" not in text
    assert "terminal" not in text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"tool": "read_file", "arguments": {"path": "a"}}', "read_file"),
        ('{"tool": "reply", "arguments": {}}', None),
        ('{"tool": "read_file", "arguments": {"pa', None),
        ('{"tool": "read_file", "arguments": {"file": "a"}}', None),
        ('{"tool": "rm", "arguments": {}}', None),
        ("[]", None),
        ("", None),
    ],
)
def test_an_answer_is_a_call_only_if_it_is_whole_and_known(text: str, name: str | None) -> None:
    route = read_route(text, ROUTED_TOOLS)

    assert (route.tool.name if route.tool else None) == name
    assert route.tool is not None or route == Route()


@pytest.mark.parametrize(
    ("path", "told", "invented"),
    [
        ("notes.txt", "read notes.txt", False),
        ("Notes.txt", "read the notes", False),
        ("src/main.py", "open src/main.py", False),
        ("python_version.txt", "which Python is here?", True),
    ],
)
def test_a_file_that_nobody_named_is_invented(path: str, told: str, invented: bool) -> None:
    assert BY_NAME["read_file"].invents({"path": path}, told) is invented
