import asyncio
import json
import logging
from typing import Any

import pytest

from hermes.errors import ToolboxError
from hermes.messages import JsonObject, ToolCall, ToolResult, ToolSpec
from hermes.tools.base import FunctionTool, Outcome, ToolContext, ToolFailure
from hermes.tools.registry import ToolOptions, build_toolbox
from hermes.tools.toolbox import Toolbox


def _tool(name: str, function: Any, parameters: JsonObject | None = None) -> FunctionTool:
    schema = parameters or {"type": "object", "properties": {}}
    return FunctionTool(
        spec=ToolSpec(name=name, description="", parameters=schema), function=function
    )


async def _nothing(_arguments: JsonObject, _context: ToolContext) -> Outcome:
    return "done"


def _call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id="c1", name=name, arguments=arguments)


def _failure(name: str, text: str) -> ToolResult:
    return ToolResult(call_id="c1", name=name, text=text, is_error=True)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolboxError) as caught:
        Toolbox([_tool("a", _nothing), _tool("a", _nothing)])

    assert caught.value.code == "duplicate_tool"


def test_specs_keep_the_order_given() -> None:
    box = Toolbox([_tool(name, _nothing) for name in "cab"])

    assert [spec.name for spec in box.specs] == ["c", "a", "b"]


@pytest.mark.asyncio
async def test_an_unknown_tool_is_an_error_that_names_the_nearest(context: ToolContext) -> None:
    box = Toolbox([_tool("read_file", _nothing), _tool("terminal", _nothing)])

    near = await box.run(_call("readfile"), context)
    far = await box.run(_call("zzz"), context, {})
    none = await Toolbox([]).run(_call("zzz"), context)

    assert near == _failure("readfile", "There is no tool 'readfile'. Did you mean read_file?")
    assert far == _failure("zzz", "There is no tool 'zzz'. Available: read_file, terminal.")
    assert none == _failure("zzz", "There is no tool 'zzz'; no tools are available.")


@pytest.mark.asyncio
async def test_empty_arguments_run_a_tool_that_requires_nothing(context: ToolContext) -> None:
    box = Toolbox([_tool("a", _nothing)])

    result = await box.run(_call("a", ""), context)

    assert result == ToolResult(call_id="c1", name="a", text="done")


@pytest.mark.asyncio
async def test_an_exception_is_an_error_result_and_its_traceback_is_logged(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        raise KeyError("lost")

    result = await Toolbox([_tool("a", broken)]).run(_call("a"), context)

    assert result == _failure("a", "a failed: KeyError: 'lost'")
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info
    assert record.exc_info[0] is KeyError


@pytest.mark.asyncio
async def test_an_expected_failure_is_told_and_not_logged(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        raise ToolFailure("not today")

    result = await Toolbox([_tool("a", refuse)]).run(_call("a"), context)

    assert result.text == "not today"
    assert result.is_error
    assert caplog.records == []


@pytest.mark.asyncio
async def test_a_tool_beyond_its_time_is_ended_and_told(context: ToolContext) -> None:
    ended = asyncio.Event()

    async def wait(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    box = Toolbox([_tool("a", wait)], time_limits={"a": 0.01})
    async with asyncio.timeout(20):
        result = await box.run(_call("a"), context)

    assert result == _failure("a", "a was ended after 0.01 s without a result.")
    assert ended.is_set()


@pytest.mark.asyncio
async def test_a_timeout_inside_a_tool_is_not_taken_for_the_toolbox_limit(
    context: ToolContext,
) -> None:
    async def impatient(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        raise TimeoutError("the remote side was silent")

    result = await Toolbox([_tool("a", impatient)]).run(_call("a"), context)

    assert result == _failure("a", "a failed: TimeoutError: the remote side was silent")


@pytest.mark.asyncio
async def test_cancelling_passes_through(context: ToolContext) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    running = asyncio.ensure_future(Toolbox([_tool("a", wait)]).run(_call("a"), context))
    async with asyncio.timeout(20):
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert ended.is_set()


FAILING = [
    ({"exit_code": 2, "output": "..."}, True),
    ({"exit_code": 0, "output": "..."}, False),
    ({"returncode": -9}, True),
    ({"success": False}, True),
    ({"success": True, "error": None}, False),
    ({"error": "no"}, True),
    ({"error": ""}, False),
    ({"isError": True, "content": []}, True),
    ({"output": "exit_code 2"}, False),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("value", "is_error"), FAILING)
async def test_an_object_result_tells_the_truth_about_failure(
    value: JsonObject, is_error: bool, context: ToolContext
) -> None:
    async def answer(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        return value

    result = await Toolbox([_tool("a", answer)]).run(_call("a"), context)

    assert result.is_error is is_error
    assert json.loads(result.text) == value


@pytest.mark.asyncio
async def test_a_long_result_keeps_both_ends_and_the_whole_is_readable(
    context: ToolContext,
) -> None:
    whole = "\n".join(f"line {number} äöü€😀" for number in range(20_000))

    async def talk(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        return whole

    box = build_toolbox(["none", "read_result"], extra=[_tool("talk", talk)])
    result = await box.run(_call("talk"), context)

    assert len(result.text) <= 30_000
    assert result.text.startswith("line 0 äöü€😀\n")
    assert result.text.endswith("\nline 19999 äöü€😀")
    assert f'read_result(id="{result.stored_as}") gives the whole' in result.text
    pages: list[str] = []
    offset = 0
    while True:
        asked = json.dumps({"id": result.stored_as, "offset": offset})
        page = await box.run(_call("read_result", asked), context)
        text, _, note = page.text.rpartition("\n[bytes ")
        pages.append(text)
        assert len(page.text) < 30_000
        if note.endswith("end]"):
            break
        offset = int(note.rpartition(" ")[2].rstrip("]"))
    assert "".join(pages) == whole


@pytest.mark.asyncio
async def test_a_long_result_is_given_cut_when_the_disk_refuses(context: ToolContext) -> None:
    context.results.write_text("a file where the folder should be")

    async def talk(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        return "x" * 40_000

    result = await Toolbox([_tool("talk", talk)]).run(_call("talk"), context)

    assert not result.is_error
    assert result.stored_as == ""
    assert "could not be kept" in result.text
    assert len(result.text) <= 30_000


@pytest.mark.asyncio
async def test_a_tool_that_breaks_the_port_is_an_error_result(context: ToolContext) -> None:
    class Broken:
        spec = ToolSpec(name="a", description="")

        async def __call__(self, arguments: JsonObject, context: ToolContext) -> Any:
            return None

    result = await Toolbox([Broken()]).run(_call("a"), context)

    assert result.is_error
    assert result.text.startswith("a failed: ")


@pytest.mark.asyncio
async def test_a_result_can_always_be_sent(context: ToolContext) -> None:
    async def talk(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        return "half \ud83d and byte \udcff of ä"

    result = await Toolbox([_tool("talk", talk)]).run(_call("talk"), context)

    assert result.text == "half ? and byte ? of ä"


@pytest.mark.asyncio
async def test_calls_run_side_by_side(context: ToolContext) -> None:
    both = asyncio.Barrier(2)

    async def meet(_arguments: JsonObject, _context: ToolContext) -> Outcome:
        await both.wait()
        return "met"

    box = Toolbox([_tool("a", meet)])
    async with asyncio.timeout(20):
        results = await asyncio.gather(box.run(_call("a"), context), box.run(_call("a"), context))

    assert [result.text for result in results] == ["met", "met"]


def test_a_foreign_tool_with_an_invalid_schema_is_usable(caplog: pytest.LogCaptureFixture) -> None:
    box = Toolbox([_tool("a", _nothing, {"type": "nonsense"})])

    assert box.parse(_call("a", '{"x": 1}')) == {"x": 1}
    assert "invalid schema" in caplog.text


def test_a_schema_never_fetches_another_document(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "http://192.0.2.1/schema.json"}}}
    box = Toolbox([_tool("a", _nothing, schema)])

    assert box.parse(_call("a", '{"x": 1}')) == {"x": 1}
    assert "cannot be applied" in caplog.text


def test_an_error_text_shows_no_secret() -> None:
    schema = {"type": "object", "properties": {"key": {"type": "integer"}}}
    box = Toolbox([_tool("a", _nothing, schema)])
    secret = "sk-" + "a1B2c3D4" * 12

    result = box.parse(_call("a", json.dumps({"key": secret})))

    assert isinstance(result, ToolResult)
    assert "a1B2" not in result.text


def test_the_default_tools_cost_the_model_little() -> None:
    box = build_toolbox()
    tools = [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for spec in box.specs
    ]

    assert len(json.dumps(tools)) < 4_000
    assert [spec.name for spec in box.specs] == [
        "terminal",
        "read_file",
        "write_file",
        "patch",
        "search_files",
        "read_result",
        "current_time",
    ]


@pytest.mark.asyncio
async def test_every_shipped_schema_is_valid_and_closed(caplog: pytest.LogCaptureFixture) -> None:
    box = build_toolbox(options=ToolOptions())

    await box.prepare()

    assert caplog.records == []
    assert all(spec.parameters["additionalProperties"] is False for spec in box.specs)


def test_a_toolbox_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(ToolboxError) as caught:
        build_toolbox(["termnal"])

    assert caught.value.code == "unknown_toolset"
    assert "terminal" in caught.value.message
