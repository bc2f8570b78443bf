"""The shipped fake does what its script says."""

import asyncio
from typing import Any

import pytest

from hermes.errors import ProviderConnectionError, ProviderError
from hermes.events import Finish, ReasoningDelta, TextDelta, ToolCallDelta
from hermes.messages import ModelRequest, ToolCall, text_message
from hermes.providers.base import Provider
from hermes.providers.scripted import ScriptedProvider
from support.scripted_http import wait_until

pytestmark = pytest.mark.asyncio


def asking(text: str = "hi") -> ModelRequest:
    return ModelRequest(model="m", messages=(text_message("user", text),))


async def deltas_of(provider: Provider, text: str = "hi") -> list[Any]:
    async with asyncio.timeout(20), provider.stream(asking(text)) as deltas:
        return [item async for item in deltas]


async def test_words_are_an_answer_with_its_finish() -> None:
    provider = ScriptedProvider(["Hello"])
    first, last = await deltas_of(provider)
    assert first == TextDelta("Hello")
    assert isinstance(last, Finish)
    assert (last.reason, last.usage.total) == ("stop", 15)
    assert provider.requests == [asking()]
    assert provider.closed == provider.remaining == 0


async def test_pieces_come_in_order_and_calls_end_with_tool_calls() -> None:
    one = ToolCall(id="a", name="look", arguments="{}")
    two = ToolCall(id="b", name="look", arguments="{}")
    deltas = await deltas_of(ScriptedProvider([[ReasoningDelta("hm"), "I look.", one, two]]))
    assert deltas[:-1] == [
        ReasoningDelta("hm"),
        TextDelta("I look."),
        ToolCallDelta(index=0, id="a", name="look", arguments="{}"),
        ToolCallDelta(index=1, id="b", name="look", arguments="{}"),
    ]
    assert deltas[-1].reason == "tool_calls"


async def test_a_finish_of_ones_own_is_the_last_delta() -> None:
    deltas = await deltas_of(ScriptedProvider([["cut", Finish(reason="length"), "never"]]))
    assert deltas == [TextDelta("cut"), Finish(reason="length")]


async def test_errors_are_raised_where_they_stand() -> None:
    provider = ScriptedProvider([ProviderConnectionError("x"), ["a", ProviderConnectionError("y")]])
    with pytest.raises(ProviderError, match="x"):
        await deltas_of(provider)
    seen: list[Any] = []
    with pytest.raises(ProviderError, match="y"):  # noqa: PT012 - it fails at the end
        async with provider.stream(asking()) as deltas:
            async for item in deltas:
                seen.append(item)  # noqa: PERF401 - what came before the error counts
    assert seen == [TextDelta("a")]


async def test_a_step_can_be_made_from_the_request() -> None:
    provider = ScriptedProvider(default=lambda request: request.messages[-1].text.upper())
    assert (await deltas_of(provider, "hi"))[0] == TextDelta("HI")
    assert (await deltas_of(provider, "you"))[0] == TextDelta("YOU")


async def test_an_event_holds_the_answer_and_leaving_is_counted() -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([["a", gate, "b"], ["a", gate, "b"]])
    task = asyncio.ensure_future(deltas_of(provider))
    await wait_until(lambda: bool(provider.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.closed == 1
    gate.set()
    assert len(await deltas_of(provider)) == 3
    assert provider.closed == 1


async def test_a_call_too_many_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="call 1"):
        await deltas_of(ScriptedProvider())


async def test_it_notes_that_it_was_released() -> None:
    provider = ScriptedProvider()
    await provider.aclose()
    assert provider.released
