"""Cuts at every byte and cancels at every await, on all protocols over real HTTP."""

import asyncio
import gzip
from contextlib import suppress
from typing import Any

import pytest

from hermes.errors import ProviderError
from hermes.events import Finish
from hermes.providers.chain import ProviderChain
from support.agents import answer_of, asking, chain_over, served_by, text_of
from support.scripted_http import (
    LAST,
    LIMIT,
    Answer,
    Fault,
    ScriptedHttp,
    anthropic_events,
    chat_events,
    chunk,
    delta,
    head,
    responses_events,
    stream,
    wait_until,
)

pytestmark = pytest.mark.asyncio

PROTOCOLS = [
    ("openai_chat", chat_events(("Hé", "llo"))),
    ("anthropic", anthropic_events("Héllo")),
    ("openai_responses", responses_events("Héllo")),
]


@pytest.mark.parametrize(("protocol", "events"), PROTOCOLS, ids=[name for name, _ in PROTOCOLS])
@pytest.mark.parametrize(("fault", "stride"), [(Fault.CLOSE, 1), (Fault.RESET, 5)])
async def test_cut_at_each_byte_no_text_is_lost_or_doubled(
    scripted_http: ScriptedHttp, protocol: Any, events: list[bytes], fault: Fault, stride: int
) -> None:
    raw = b"".join(events)
    scripted_http.default = lambda _request: stream(*events)
    async with chain_over(served_by(scripted_http, protocol=protocol)) as chain:
        for cut in range(0, len(raw), stride):
            scripted_http.script([head(), *([chunk(raw[:cut])] if cut else []), fault])
            seen, failure = await listen(chain)
            ends = sum(isinstance(item, Finish) for item in seen)
            if failure is None:
                assert (text_of(seen), ends) == ("Héllo", 1)
            else:
                assert text_of(seen) in ("Hé", "Héllo")
                assert ends == 0


@pytest.mark.parametrize(("protocol", "events"), PROTOCOLS, ids=[name for name, _ in PROTOCOLS])
async def test_every_word_that_came_before_the_cut_is_delivered(
    scripted_http: ScriptedHttp, protocol: Any, events: list[bytes]
) -> None:
    until = 1 + next(number for number, event in enumerate(events) if b"llo" in event)
    scripted_http.script([head(), chunk(b"".join(events[:until])), Fault.RESET])
    async with chain_over(served_by(scripted_http, protocol=protocol)) as chain:
        seen, failure = await listen(chain)
    assert text_of(seen) == "Héllo"
    assert failure is not None
    assert len(scripted_http.requests) == 1


async def listen(chain: ProviderChain) -> tuple[list[Any], ProviderError | None]:
    """What a call delivers, and its failure."""
    seen: list[Any] = []
    try:
        async with asyncio.timeout(LIMIT), chain.stream(asking()) as deltas:
            async for item in deltas:
                seen.append(item)  # noqa: PERF401 - what came before the error counts
    except ProviderError as error:
        return seen, error
    return seen, None


def _paced(_request: Any) -> Answer:
    """A whole stream whose pieces come twenty turns of the loop apart, however fast it turns."""
    steps: list[Any] = []
    for number, piece in enumerate([head(), *(chunk(e) for e in chat_events("abcd")), LAST]):
        gate = asyncio.Event()
        _set_after(20 * number, gate)
        steps += [gate, piece]
    return steps


def _set_after(turns: int, gate: asyncio.Event) -> None:
    if turns == 0:
        gate.set()
    else:
        asyncio.get_running_loop().call_soon(_set_after, turns - 1, gate)


async def test_cancelled_at_any_await_the_wire_is_closed_at_once(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.default = _paced
    cancelled = 0
    for turns in range(0, 240, 3):
        before = len(scripted_http.requests)

        def settled(before: int = before) -> bool:
            # A connection whose answer was received to its end may wait for the next call.
            whole = len(scripted_http.requests) > before
            whole = whole and scripted_http.requests[-1].answered.is_set()
            return whole or not scripted_http.open

        async with chain_over(served_by(scripted_http)) as chain:
            task = asyncio.ensure_future(answer_of(chain))
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled += task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await wait_until(settled)
        await wait_until(lambda: not scripted_http.open)
    assert cancelled > 2


async def test_a_cancel_while_the_endpoint_stalls_asks_nobody_again(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.default = lambda _request: [head(), Fault.HANG]
    async with ScriptedHttp() as other:
        async with chain_over(served_by(scripted_http), served_by(other)) as chain:
            task = asyncio.ensure_future(answer_of(chain))
            request = await scripted_http.request(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(request.hung_up.wait(), LIMIT)
        assert len(scripted_http.requests) == 1
        assert not other.requests


async def test_leaving_the_stream_early_closes_the_wire(scripted_http: ScriptedHttp) -> None:
    scripted_http.script([head(), chunk(delta(content="a")), Fault.HANG])
    async with chain_over(served_by(scripted_http)) as chain:
        async with asyncio.timeout(LIMIT), chain.stream(asking()) as deltas:
            async for _ in deltas:
                break
        await asyncio.wait_for(scripted_http.requests[0].hung_up.wait(), LIMIT)


async def test_a_compressed_stream_is_read_though_none_is_asked_for(
    scripted_http: ScriptedHttp,
) -> None:
    packed = gzip.compress(b"".join(chat_events(("Héllo",))))
    pieces = [chunk(packed[n : n + 7]) for n in range(0, len(packed), 7)]
    scripted_http.script([head(content_encoding="gzip"), *pieces, LAST])
    async with chain_over(served_by(scripted_http)) as chain:
        assert text_of(await answer_of(chain)) == "Héllo"
    assert scripted_http.requests[0].headers["accept-encoding"] == "identity"


async def test_a_stream_without_length_or_chunks_ends_with_its_connection(
    scripted_http: ScriptedHttp,
) -> None:
    bare = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    scripted_http.script([bare, *chat_events(("Héllo",)), Fault.CLOSE])
    async with chain_over(served_by(scripted_http)) as chain:
        assert text_of(await answer_of(chain)) == "Héllo"


async def test_an_answer_without_a_blank_line_at_its_end_is_whole(
    scripted_http: ScriptedHttp,
) -> None:
    end = delta(content="llo", finish="stop").rstrip(b"\n")
    scripted_http.script(stream(delta(content="Hé"), end))
    async with chain_over(served_by(scripted_http)) as chain:
        deltas = await answer_of(chain)
    assert text_of(deltas) == "Héllo"
    assert isinstance(deltas[-1], Finish)


@pytest.mark.parametrize(
    "cut",
    [
        [head(content_type="application/json", length=50) + b'{"choices":', Fault.CLOSE],
        [head(content_type="application/json", length=0)],
        [head(content_type="application/json", length=4) + b"null"],
        [head(content_type="application/json", length=5) + b'{"a":'],
    ],
    ids=["cut", "empty", "null", "broken"],
)
async def test_a_broken_whole_answer_is_asked_for_again(
    scripted_http: ScriptedHttp, cut: Answer
) -> None:
    good = b'{"model":"m","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}'
    scripted_http.script(cut, [head(content_type="application/json", length=len(good)) + good])
    async with chain_over(served_by(scripted_http)) as chain:
        assert text_of(await answer_of(chain, asking(stream=False))) == "ok"
    assert len(scripted_http.requests) == 2
