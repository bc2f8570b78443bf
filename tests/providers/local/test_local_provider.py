"""The local model as a provider, its process scripted: one choice, then plain words or a call."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.errors import EmptyAnswerError, LocalModelError, ProviderError, ProviderStatusError
from hermes.events import Delta, Finish, Retrying, TextDelta, ToolCallDelta
from hermes.messages import (
    Message,
    ModelOptions,
    ModelRequest,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    text_message,
)
from hermes.providers.local import LocalProvider, ensure_local
from hermes.providers.local_child import ChildPolicy
from hermes.providers.local_machine import Machine
from providers.local.conftest import FakeModel

pytestmark = pytest.mark.asyncio

READ_FILE = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
)
CLOCK = ToolSpec(name="current_time", description="The time.")
TOOLS = (READ_FILE, CLOCK)
REPLY = {"text": ['{"tool": "reply", ', '"arguments": {}}']}
READ_A = {"text": ['{"tool": "read_file", "arguments": {"path": "a.txt"}}']}
WARM = {"text": ["{"]}
BACK = {"text": ["Back."]}


def asking(
    text: str = "what is in a.txt?",
    *more: Message,
    tools: tuple[ToolSpec, ...] = TOOLS,
    **options: object,
) -> ModelRequest:
    return ModelRequest(
        model="",
        messages=(text_message("user", text), *more),
        tools=tools,
        options=ModelOptions(**options),  # type: ignore[arg-type]
    )


@asynccontextmanager
async def provided(
    model: FakeModel, home: Path, policy: ChildPolicy
) -> AsyncIterator[LocalProvider]:
    provider = LocalProvider(home, model.weights, policy=policy)
    try:
        async with asyncio.timeout(20):
            yield provider
    finally:
        await provider.aclose()


async def answer(provider: LocalProvider, request: ModelRequest) -> list[Delta]:
    async with provider.stream(request) as deltas:
        return [delta async for delta in deltas]


def words(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


async def test_a_chosen_tool_is_a_call_and_ends_the_step(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model(READ_A)

    async with provided(model, home, policy) as provider:
        call, finish = await answer(provider, asking())

    assert isinstance(call, ToolCallDelta)
    assert (call.index, call.name, json.loads(call.arguments)) == (
        0,
        "read_file",
        {"path": "a.txt"},
    )
    assert call.id
    assert finish == Finish(
        reason="tool_calls",
        usage=Usage(input=10, output=2),
        model="local/tiny",
        origin="local/tiny",
    )
    (request,) = model.requests
    assert request["temperature"] == 0
    choices = request["response_format"]["json_schema"]["schema"]["anyOf"]
    names = [choice["properties"]["tool"]["const"] for choice in choices]
    assert names == ["reply", "current_time", "read_file"]


async def test_a_reply_streams_plain_words_without_tools_and_counts_both_calls(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model(REPLY, {"text": ["Good ", "day."]})

    async with provided(model, home, policy) as provider:
        deltas = await answer(provider, asking("hello"))

    assert words(deltas) == "Good day."
    assert deltas[-1] == Finish(
        reason="stop",
        usage=Usage(input=20, output=4),
        model="local/tiny",
        origin="local/tiny",
    )
    reply = model.requests[1]
    assert reply["temperature"] == 0.2
    assert reply["stream"] is True
    assert "tools" not in reply
    assert "response_format" not in reply
    assert all(entry["authorised"] for entry in model.notes if "request" in entry)


async def test_without_tools_nothing_is_chosen_and_the_client_s_options_hold(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model({"text": ["{}"]})
    options = {"temperature": 0.9, "max_output_tokens": 5, "stop": ("x",), "seed": 3}

    async with provided(model, home, policy) as provider:
        await answer(provider, asking(tools=(), response_format={"type": "json_object"}, **options))

    (request,) = model.requests
    assert request["temperature"] == 0.9
    assert request["max_tokens"] == 5
    assert request["stop"] == ["x"]
    assert request["seed"] == 3
    assert request["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        ("none", None),
        ("required", ["current_time", "read_file"]),
        ("current_time", ["current_time"]),
        ("unknown", None),
    ],
)
async def test_the_tool_choice_of_the_request_holds(
    fake_model: Callable[..., FakeModel],
    home: Path,
    policy: ChildPolicy,
    choice: str,
    offered: list[str] | None,
) -> None:
    model = fake_model({"text": ['{"tool": "current_time", "arguments": {}}']})

    async with provided(model, home, policy) as provider:
        deltas = await answer(provider, asking(tool_choice=choice))

    (request,) = model.requests
    if offered is None:
        assert "response_format" not in request
        assert isinstance(deltas[0], TextDelta)
    else:
        choices = request["response_format"]["json_schema"]["schema"]["anyOf"]
        assert [entry["properties"]["tool"]["const"] for entry in choices] == offered
        assert isinstance(deltas[0], ToolCallDelta)


async def test_a_call_that_the_turn_has_made_is_not_made_again(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model(READ_A, {"text": ["It says tulips."]})
    made = Message(
        role="assistant",
        parts=(ToolCall(id="1", name="read_file", arguments='{"path":"a.txt"}'),),
    )
    seen = Message(role="tool", parts=(ToolResult(call_id="1", name="read_file", text="tulips"),))

    async with provided(model, home, policy) as provider:
        deltas = await answer(provider, asking("what is in a.txt?", made, seen))

    assert words(deltas) == "It says tulips."
    assert "tulips\n[end of result]" in model.requests[1]["messages"][-1]["content"]


async def test_a_file_that_nobody_named_is_chosen_again_without_that_tool(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    invented = {"text": ['{"tool": "read_file", "arguments": {"path": "current_time.txt"}}']}
    clock = {"text": ['{"tool": "current_time", "arguments": {}}']}
    model = fake_model(invented, clock)

    async with provided(model, home, policy) as provider:
        deltas = await answer(provider, asking("how late is it?"))

    assert [delta.name for delta in deltas if isinstance(delta, ToolCallDelta)] == ["current_time"]
    first, second = model.requests
    assert first["messages"] == second["messages"]
    choices = second["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [entry["properties"]["tool"]["const"] for entry in choices] == ["reply", "current_time"]


async def test_leaving_the_stream_stops_the_model(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model({"text": ["one "], "hold": True})

    async with provided(model, home, policy) as provider:
        async with provider.stream(asking(tools=())) as deltas:
            first = await anext(deltas)
        while {"hung_up": True} not in model.notes:  # noqa: ASYNC110 - written by another process
            await asyncio.sleep(0.01)

    assert first == TextDelta("one ")


async def test_cancelling_the_choice_stops_the_model(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model({"text": ["{"], "hold": True})

    async with provided(model, home, policy) as provider:
        asked = asyncio.ensure_future(answer(provider, asking()))
        while not model.requests:  # noqa: ASYNC110 - written by another process
            await asyncio.sleep(0.01)
        asked.cancel()
        while {"hung_up": True} not in model.notes:  # noqa: ASYNC110 - written by another process
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await asked


async def test_a_crash_before_the_first_word_is_made_good_by_the_next_process(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model({"crash": True}, BACK, BACK)  # the restarted process may be warmed first

    async with provided(model, home, policy) as provider:
        deltas = await answer(provider, asking(tools=()))

    assert isinstance(deltas[0], Retrying)
    assert words(deltas) == "Back."
    assert len(model.pids) == 2


async def test_a_crash_in_the_middle_of_an_answer_is_an_error_and_not_repeated(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model({"text": ["Half "], "crash": True}, WARM, {"text": ["never"]})
    seen: list[Delta] = []

    async def listen(provider: LocalProvider) -> None:
        async with provider.stream(asking(tools=())) as deltas:
            async for delta in deltas:
                seen.append(delta)  # noqa: PERF401 - kept although the stream fails

    async with provided(model, home, policy) as provider:
        with pytest.raises(ProviderError) as caught:
            await listen(provider)

    assert caught.value.code in ("provider_incomplete", "provider_connection")
    assert seen == [TextDelta("Half ")]


async def test_a_conversation_that_is_too_long_gets_a_way_out(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    refusal = {
        "error": {
            "code": 400,
            "message": "request (12030 tokens) exceeds the available context size (8192 tokens)",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 12030,
            "n_ctx": 8192,
        }
    }
    model = fake_model({"status": 400, "body": refusal})

    async with provided(model, home, policy) as provider:
        with pytest.raises(ProviderStatusError) as caught:
            await answer(provider, asking(tools=()))

    assert caught.value.code == "context_length_exceeded"
    assert caught.value.status == 400
    assert "start a new chat or add a provider" in caught.value.message


async def test_an_answer_without_a_word_is_an_error(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    async with provided(fake_model({"text": []}), home, policy) as provider:
        with pytest.raises(EmptyAnswerError):
            await answer(provider, asking(tools=()))


async def test_a_closed_provider_refuses(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    async with provided(fake_model(), home, policy) as provider:
        await provider.aclose()
        with pytest.raises(LocalModelError) as caught:
            await answer(provider, asking())

    assert caught.value.code == "local_model_closed"


async def test_ensuring_starts_and_warms_the_model_in_the_background(
    fake_model: Callable[..., FakeModel], home: Path, policy: ChildPolicy
) -> None:
    model = fake_model(WARM, REPLY, {"text": ["Hi."]})

    provider = await ensure_local(home, "local/tiny", policy=policy)
    async with asyncio.timeout(20):
        while not model.requests:  # noqa: ASYNC110 - written by another process
            await asyncio.sleep(0.01)
        deltas = await answer(provider, asking("hello"))
    await provider.aclose()

    warm, route, _reply = model.requests
    assert warm["messages"][0]["role"] == "system"
    assert warm["max_tokens"] == 1
    assert route["response_format"] is not None
    assert words(deltas) == "Hi."
    assert (provider.model_id, provider.label) == ("local/tiny", "Local demo model")


async def test_nothing_is_fetched_for_a_machine_that_cannot_run_it(
    fake_model: Callable[..., FakeModel], home: Path
) -> None:
    fake_model().file.unlink()
    lacking = Machine(has_runtime=False, has_openmp=True, has_avx2=True, free_memory=None)

    with pytest.raises(LocalModelError) as caught:
        await ensure_local(home, "tiny", machine=lambda: lacking)

    assert caught.value.code == "runtime_missing"
