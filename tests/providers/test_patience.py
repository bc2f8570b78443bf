"""How long a call waits: only content counts, over real HTTP with a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio

from hermes.errors import ProviderTimeoutError
from hermes.events import Finish, ReasoningDelta, TextDelta
from hermes.providers.call import Call
from hermes.providers.http import Transport
from hermes.providers.limits import Limits, is_reasoning_model, patience
from support.agents import asking, served_by
from support.manual_clock import ManualClock
from support.scripted_http import (
    LAST,
    LIMIT,
    Answer,
    Fault,
    ScriptedHttp,
    chunk,
    delta,
    head,
    named,
    wait_until,
)

FIVE = Limits(first_content=5.0, stall=5.0, whole_answer=5.0)


class Watched:
    """A call at a scripted server under a manual clock, its deltas gathered by a task."""

    def __init__(self, server: ScriptedHttp, transport: Transport, **changes: Any) -> None:
        stream = changes.pop("stream", True)
        made = served_by(server, **{"limits": FIVE, **changes})
        self.clock = ManualClock()
        self.call = Call(transport, made, made.quirks, asking(stream=stream), clock=self.clock)
        self.deltas: list[Any] = []
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        async with aclosing(self.call.deltas()) as deltas:
            async for item in deltas:
                self.deltas.append(item)

    async def reads(self, count: int) -> None:
        await wait_until(lambda: self.call.progress.reads >= count)

    async def failure(self) -> ProviderTimeoutError:
        with pytest.raises(ProviderTimeoutError) as caught:
            await asyncio.wait_for(self.task, LIMIT)
        return caught.value


@pytest_asyncio.fixture
async def transport() -> AsyncIterator[Transport]:
    made = Transport()
    yield made
    await made.aclose()


def gates(count: int) -> list[asyncio.Event]:
    return [asyncio.Event() for _ in range(count)]


def spaced(waits: list[asyncio.Event], piece: bytes, *after: Any) -> Answer:
    """The head at once, then a piece after each gate."""
    return [head(), *(step for gate in waits for step in (gate, chunk(piece))), *after]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "noise",
    [b": ping\n\n", b"data: {}\n\n", delta(), named("ping", {"type": "ping"}), delta(content="")],
    ids=["comment", "empty object", "empty delta", "ping event", "empty text"],
)
async def test_keep_alives_do_not_extend_the_limit(
    scripted_http: ScriptedHttp, transport: Transport, noise: bytes
) -> None:
    waits = gates(4)
    scripted_http.script(spaced(waits, noise, Fault.HANG))
    watched = Watched(scripted_http, transport)
    request = await scripted_http.request(1)
    for count, gate in enumerate(waits, 1):
        gate.set()
        await watched.reads(count)
        watched.clock.advance(1.0)
    assert not watched.task.done()
    watched.clock.advance(1.0)
    error = await watched.failure()
    assert error.code == "provider_stalled"
    assert "5 s" in error.message
    await asyncio.wait_for(request.hung_up.wait(), LIMIT)


@pytest.mark.asyncio
async def test_a_stream_with_reasoning_now_and_then_lives_on(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    waits = gates(5)
    tail = (chunk(delta(finish="stop")), LAST)
    scripted_http.script(spaced(waits, delta(reasoning_content="hm "), *tail))
    watched = Watched(scripted_http, transport)
    await scripted_http.request(1)
    for count, gate in enumerate(waits, 1):
        watched.clock.advance(4.0)
        gate.set()
        await watched.reads(count)
    await asyncio.wait_for(watched.task, LIMIT)
    thoughts = [item.text for item in watched.deltas if isinstance(item, ReasoningDelta)]
    assert "".join(thoughts) == "hm " * 5
    assert isinstance(watched.deltas[-1], Finish)


@pytest.mark.asyncio
@pytest.mark.parametrize("answer", [[Fault.HANG], [head(), Fault.HANG]], ids=["mute", "head only"])
async def test_a_silent_endpoint_is_named_silent(
    scripted_http: ScriptedHttp, transport: Transport, answer: Answer
) -> None:
    scripted_http.script(answer)
    watched = Watched(scripted_http, transport)
    request = await scripted_http.request(1)
    watched.clock.advance(5.0)
    error = await watched.failure()
    assert error.code == "provider_timeout"
    assert "silent" in error.message
    await asyncio.wait_for(request.hung_up.wait(), LIMIT)


@pytest.mark.asyncio
async def test_a_stall_after_content_names_the_stall_and_keeps_what_came(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script([head(), chunk(delta(content="Half")), Fault.HANG])
    limits = Limits(first_content=50.0, stall=5.0)
    watched = Watched(scripted_http, transport, limits=limits)
    await wait_until(lambda: bool(watched.deltas))
    await asyncio.sleep(0)
    watched.clock.advance(5.0)
    error = await watched.failure()
    assert error.code == "provider_stalled"
    assert "stall" in error.message
    assert "output" not in error.message
    assert watched.deltas == [TextDelta("Half")]


@pytest.mark.asyncio
async def test_a_reader_that_is_busy_is_no_stall(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    more = asyncio.Event()
    answer = [head(), chunk(delta(content="a")), more, chunk(delta(content="b", finish="stop"))]
    scripted_http.script([*answer, LAST])
    made = served_by(scripted_http, limits=FIVE)
    clock = ManualClock()
    call = Call(transport, made, made.quirks, asking(), clock=clock)
    texts: list[str] = []
    async with asyncio.timeout(LIMIT), aclosing(call.deltas()) as deltas:
        async for item in deltas:
            if isinstance(item, TextDelta):
                texts.append(item.text)
                clock.advance(600.0)
                more.set()
    assert texts == ["a", "b"]


@pytest.mark.asyncio
async def test_usage_is_waited_for_only_shortly_after_the_finish_reason(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    last = chunk(delta(content="all", finish="stop"))
    scripted_http.script([head(), last, Fault.HANG])
    watched = Watched(scripted_http, transport, limits=Limits(first_content=500.0, stall=500.0))
    await watched.reads(1)
    await asyncio.sleep(0)
    watched.clock.advance(3.0)
    await asyncio.wait_for(watched.task, LIMIT)
    assert [item.kind for item in watched.deltas] == ["text_delta", "finish"]


@pytest.mark.asyncio
async def test_an_answer_that_is_not_streamed_has_a_limit_of_its_own(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script([Fault.HANG])
    limits = Limits(first_content=5.0, stall=5.0, whole_answer=60.0)
    watched = Watched(scripted_http, transport, limits=limits, stream=False)
    await scripted_http.request(1)
    watched.clock.advance(59.0)
    assert not watched.task.done()
    watched.clock.advance(1.0)
    assert (await watched.failure()).code == "provider_timeout"


@pytest.mark.asyncio
async def test_a_reasoning_model_is_given_more_time_than_the_base_limit(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    base = patience(Limits(), local=False, reasoning=False).first_content
    gate = asyncio.Event()
    late = delta(content="42", finish="stop")
    scripted_http.script([head(), gate, chunk(late), LAST])
    watched = Watched(
        scripted_http, transport, limits=Limits(), model="deepseek-reasoner", local=False
    )
    await scripted_http.request(1)
    watched.clock.advance(1.5 * base)
    gate.set()
    await asyncio.wait_for(watched.task, LIMIT)
    assert watched.deltas[0] == TextDelta("42")


@pytest.mark.asyncio
async def test_an_explicit_limit_below_the_floor_of_a_reasoning_model_is_used(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script([head(), Fault.HANG])
    watched = Watched(
        scripted_http, transport, limits=Limits(first_content=30.0), model="o3", local=False
    )
    await scripted_http.request(1)
    watched.clock.advance(30.0)
    assert (await watched.failure()).code == "provider_timeout"


def test_local_endpoints_and_reasoning_models_are_given_more_time() -> None:
    plain = patience(Limits(), local=False, reasoning=False)
    thinking = patience(Limits(), local=False, reasoning=True)
    local = patience(Limits(), local=True, reasoning=False)
    assert plain.first_content < thinking.first_content < local.first_content == 900.0
    assert plain.stall < thinking.stall < local.stall == 900.0


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("reasoning", [True, False])
def test_an_explicit_limit_always_wins(local: bool, reasoning: bool) -> None:
    limits = Limits(first_content=1.0, stall=2.0, whole_answer=3.0)
    assert patience(limits, local=local, reasoning=reasoning) == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    "model",
    ["o3", "o4-mini", "openai/o1-preview", "gpt-5.4-mini", "gpt-6-sol", "deepseek-reasoner",
     "deepseek/deepseek-r1", "DeepSeek-R1-Distill-Qwen-7B", "qwq-32b", "Qwen3-30B-A3B-Thinking",
     "kimi-k2-thinking", "claude-sonnet-4-6", "gemini-2.5-pro", "grok-4", "magistral-small",
     "openai/gpt-oss-120b"],
)  # fmt: skip
def test_reasoning_models_are_known_by_name(model: str) -> None:
    assert is_reasoning_model(model)


@pytest.mark.parametrize(
    "model",
    ["gpt-4o", "gpt-4.1-mini", "llama-3.3-70b-versatile", "mistral-medium-latest", "phi-4",
     "claude-3-5-sonnet", "qwen2.5-coder-0.5b", "gemma-3-27b", "command-r-plus", "solo1"],
)  # fmt: skip
def test_other_models_are_not(model: str) -> None:
    assert not is_reasoning_model(model)
