"""Retries, fallbacks, learning and limits against a provider over real HTTP."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from hermes.errors import ProviderError
from hermes.events import Finish, Retrying
from hermes.messages import ModelOptions, text_message
from hermes.providers.limits import Limits
from hermes.providers.retry import RetryPolicy
from support.agents import answer_of, asking, chain_over, served_by, text_of
from support.scripted_http import (
    DONE,
    LAST,
    Fault,
    ScriptedHttp,
    anthropic_events,
    body,
    chat,
    chat_events,
    chunk,
    data,
    delta,
    error,
    head,
    named,
    responses_events,
    stream,
    usage,
    wait_until,
    whole,
)  # fmt: skip

pytestmark = pytest.mark.asyncio


def notices(deltas: list[Any]) -> list[str]:
    return [item.code for item in deltas if isinstance(item, Retrying)]


@pytest.mark.parametrize(
    ("protocol", "events"),
    [
        ("openai_chat", chat_events(("Hel", "lo"))),
        ("anthropic", anthropic_events("Hello")),
        ("openai_responses", responses_events("Hello")),
    ],
)
async def test_every_protocol_streams_whole_and_in_any_cut(
    scripted_http: ScriptedHttp, protocol: Any, events: list[bytes]
) -> None:
    raw = b"".join(events)
    ways = [events, [raw], [raw[n : n + 1] for n in range(len(raw))]]
    scripted_http.script(*(stream(*pieces) for pieces in ways))
    async with chain_over(served_by(scripted_http, protocol=protocol)) as chain:
        for _ in ways:
            deltas = await answer_of(chain)
            assert text_of(deltas) == "Hello"
            assert isinstance(deltas[-1], Finish)
            assert deltas[-1].usage.total == 10
            assert sum(isinstance(item, Finish) for item in deltas) == 1


async def test_a_whole_answer_is_the_same_deltas(scripted_http: ScriptedHttp) -> None:
    message = {"role": "assistant", "content": "Hello"}
    scripted_http.script(
        whole({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})
    )
    async with chain_over(served_by(scripted_http)) as chain:
        deltas = await answer_of(chain, asking(stream=False))
    assert text_of(deltas) == "Hello"
    assert (
        "stream" not in scripted_http.requests[0].body
        or not scripted_http.requests[0].body["stream"]
    )


@pytest.mark.parametrize(
    "first",
    [
        [Fault.RESET],
        [Fault.CLOSE],
        [head(), Fault.RESET],
        [head(), LAST],
        [head(), Fault.CLOSE],
        error(500, "boom"),
        error(503, "overloaded"),
        error(429, "slow down"),
        error(408, "timeout"),
        body(b"", 400),
        stream(b"data: {broken\n\n"),
        stream(named("error", {"code": "Throttling.AllocationQuota", "message": "x"})),
        stream(data({"error": {"message": "upstream temporarily unavailable", "code": 503}})),
    ],
)
async def test_what_fails_before_content_is_asked_again_on_a_new_connection(
    scripted_http: ScriptedHttp, first: Any
) -> None:
    scripted_http.script(first, chat("Hello"))
    async with chain_over(served_by(scripted_http)) as chain:
        deltas = await answer_of(chain)
    assert text_of(deltas) == "Hello"
    assert len(notices(deltas)) == 1
    one, two = scripted_http.requests
    assert one.peer != two.peer


async def test_a_break_after_content_goes_out_and_is_never_repeated(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.script([head(), chunk(delta(content="Half")), Fault.RESET])
    async with chain_over(served_by(scripted_http)) as chain:
        seen: list[Any] = []
        assert await into(seen, chain) == "provider_connection"
    assert text_of(seen) == "Half"
    assert len(scripted_http.requests) == 1


async def test_a_stream_cut_without_its_end_is_no_answer(scripted_http: ScriptedHttp) -> None:
    scripted_http.script([head(), chunk(delta(content="Half")), LAST])
    async with chain_over(served_by(scripted_http)) as chain:
        with pytest.raises(ProviderError) as caught:
            await answer_of(chain)
    assert caught.value.code == "provider_incomplete"


async def into(seen: list[Any], chain: Any) -> str:
    """Gather what a call delivers; return the code of its failure, "" without one."""
    try:
        async with asyncio.timeout(20), chain.stream(asking()) as deltas:
            async for item in deltas:
                seen.append(item)  # noqa: PERF401 - what came before the error counts
    except ProviderError as error:
        return error.code
    return ""


async def test_done_alone_is_an_end_and_a_finish_alone_too(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(
        stream(delta(content="a"), DONE),
        stream(delta(content="a"), delta(finish="stop")),
        [head(), chunk(delta(content="a") + delta(finish="stop") + DONE), Fault.CLOSE],
        [head(), chunk(delta(content="a") + delta(finish="stop")), Fault.RESET],
        stream(delta(content="a"), delta(finish="stop"), usage()),
    )
    async with chain_over(served_by(scripted_http)) as chain:
        for _ in range(5):
            deltas = await answer_of(chain)
            assert text_of(deltas) == "a"
            assert notices(deltas) == []
    assert len(scripted_http.requests) == 5


async def test_a_connection_that_the_server_closes_after_each_answer_costs_no_answer(
    scripted_http: ScriptedHttp,
) -> None:
    for _ in range(10):
        scripted_http.script([*chat("ok"), Fault.CLOSE])
    scripted_http.default = lambda _r: chat("ok")
    async with chain_over(served_by(scripted_http)) as chain:
        for _ in range(10):
            assert text_of(await answer_of(chain)) == "ok"


@pytest.mark.parametrize(
    "noise",
    [b": ping\n\n", b"data: {}\n\n", delta(), delta(content="")],
    ids=["comment", "empty object", "empty delta", "empty text"],
)
async def test_keep_alives_do_not_count_as_content(
    scripted_http: ScriptedHttp, noise: bytes
) -> None:
    def pinging(_request: Any) -> Any:
        gate = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, gate.set)
        return [head(), *[step for _ in range(20) for step in (chunk(noise), gate)], Fault.HANG]

    scripted_http.default = pinging
    limits = Limits(first_content=0.3, stall=0.3)
    async with chain_over(served_by(scripted_http, limits=limits)) as chain:
        with pytest.raises(ProviderError) as caught:
            await answer_of(chain)
    assert caught.value.code in ("provider_timeout", "provider_stalled")
    assert "output" not in caught.value.message
    assert len(scripted_http.requests) == 2


async def test_reasoning_counts_as_content_and_a_stall_after_it_is_named(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.script([head(), chunk(delta(reasoning_content="hm")), Fault.HANG])
    limits = Limits(first_content=5.0, stall=0.2)
    async with chain_over(served_by(scripted_http, limits=limits)) as chain:
        with pytest.raises(ProviderError) as caught:
            await answer_of(chain)
    assert caught.value.code == "provider_stalled"
    assert len(scripted_http.requests) == 1


async def test_a_refused_parameter_is_dropped_once_and_remembered(
    scripted_http: ScriptedHttp,
) -> None:
    refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    scripted_http.script(error(400, refusal), chat("a"), chat("b"))
    options = ModelOptions(max_output_tokens=50)
    async with chain_over(served_by(scripted_http)) as chain:
        first = await answer_of(chain, asking(options=options))
        await answer_of(chain, asking(options=options))
    assert notices(first) == []
    sent = [r.body for r in scripted_http.requests]
    assert [("max_tokens" in b, "max_completion_tokens" in b) for b in sent] == [
        (True, False), (False, True), (False, True),
    ]  # fmt: skip


async def test_configured_fields_reach_the_endpoint_and_unset_ones_do_not(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.script(chat("a"), chat("b"))
    options = ModelOptions(temperature=0.2, parallel_tool_calls=False, extra={"top_k": 5})
    async with chain_over(served_by(scripted_http, options=options)) as chain:
        await answer_of(chain)
    async with chain_over(served_by(scripted_http)) as chain:
        await answer_of(chain)
    with_options, without = (r.body for r in scripted_http.requests)
    assert (with_options["temperature"], with_options["top_k"]) == (0.2, 5)
    assert "temperature" not in without


async def test_a_deterministic_error_in_the_stream_is_tried_once(
    scripted_http: ScriptedHttp,
) -> None:
    message = "Error rendering prompt with jinja template"
    scripted_http.default = lambda _r: stream(data({"error": {"message": message}}))
    async with chain_over(served_by(scripted_http)) as chain:
        with pytest.raises(ProviderError) as caught:
            await answer_of(chain)
    assert "jinja" in caught.value.message
    assert len(scripted_http.requests) == 1


@pytest.mark.parametrize("in_stream", [False, True])
async def test_overload_fails_over_after_one_quick_retry(
    scripted_http: ScriptedHttp, in_stream: bool
) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    refuse = stream(named("error", overloaded)) if in_stream else error(529, "Overloaded")
    async with ScriptedHttp() as other:
        scripted_http.default = lambda _r: refuse
        other.default = lambda _r: chat("from the fallback")
        primary = served_by(scripted_http, protocol="anthropic" if in_stream else "openai_chat")
        async with chain_over(primary, served_by(other)) as chain:
            deltas = await answer_of(chain)
        assert text_of(deltas) == "from the fallback"
        assert len(scripted_http.requests) <= 2


async def test_a_failure_of_the_fallback_is_its_own_and_forgotten_next_turn(
    scripted_http: ScriptedHttp,
) -> None:
    async with ScriptedHttp() as other:
        scripted_http.script(error(401, "no"), error(401, "no"), chat("primary again"))
        other.script(error(429, "slow"), error(429, "slow"), error(429, "slow"), chat("fallback"))
        async with chain_over(served_by(scripted_http), served_by(other)) as chain:
            with pytest.raises(ProviderError) as caught:
                await answer_of(chain)
            assert caught.value.code == "rate_limited"
            assert text_of(await answer_of(chain)) == "fallback"
            assert text_of(await answer_of(chain)) == "primary again"


async def test_the_answering_model_is_named_by_the_answer(scripted_http: ScriptedHttp) -> None:
    async with ScriptedHttp() as other:
        scripted_http.script(error(401, "no"))
        other.script(chat("ok"))
        second = served_by(other, model="second")
        async with chain_over(served_by(scripted_http), second) as chain:
            await answer_of(chain)
        assert other.requests[0].body["model"] == "second"


@pytest.mark.parametrize(
    ("header", "waits"), [("3", [3.0]), ("0", [0.0])]
)  # fmt: skip
async def test_retry_after_is_honoured(
    scripted_http: ScriptedHttp, header: str, waits: list[float]
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    scripted_http.script(error(429, "slow", retry_after=header), chat("ok"))
    async with chain_over(served_by(scripted_http), sleep=sleep) as chain:
        assert text_of(await answer_of(chain)) == "ok"
    assert slept == waits


async def test_a_retry_after_of_a_day_fails_now(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(error(429, "slow", retry_after="86400"))
    async with chain_over(served_by(scripted_http)) as chain:
        with pytest.raises(ProviderError):
            await answer_of(chain)
    assert len(scripted_http.requests) == 1


async def test_waits_without_a_hint_stay_within_a_minute(scripted_http: ScriptedHttp) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    scripted_http.default = lambda _r: error(429, "slow")
    policy = RetryPolicy(attempts=6)
    async with chain_over(served_by(scripted_http), sleep=sleep, policy=policy) as chain:
        with pytest.raises(ProviderError):
            await answer_of(chain)
    assert len(slept) == 5
    assert sum(slept) < 60
    assert slept[0] < slept[-1]


async def test_cancelling_while_waiting_makes_no_further_request(
    scripted_http: ScriptedHttp,
) -> None:
    waiting = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    scripted_http.default = lambda _r: error(500, "boom")
    async with chain_over(served_by(scripted_http), sleep=sleep) as chain:
        running = asyncio.ensure_future(answer_of(chain))
        await asyncio.wait_for(waiting.wait(), 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert len(scripted_http.requests) == 1


@pytest.mark.parametrize(
    "answer", [[Fault.HANG], [head(), Fault.HANG], [head(), chunk(delta(content="a")), Fault.HANG]]
)  # fmt: skip
async def test_leaving_closes_the_wire_at_once(scripted_http: ScriptedHttp, answer: Any) -> None:
    scripted_http.script(answer)
    async with chain_over(served_by(scripted_http)) as chain:
        running = asyncio.ensure_future(answer_of(chain))
        request = await scripted_http.request(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.wait_for(request.hung_up.wait(), 20)


async def test_after_many_stalls_a_healthy_endpoint_is_used_again(
    scripted_http: ScriptedHttp,
) -> None:
    for _ in range(6):
        scripted_http.script([Fault.HANG])
    scripted_http.default = lambda _r: chat("healthy")
    limits = Limits(first_content=0.05)
    policy = RetryPolicy(attempts=2, base=0.0)
    async with chain_over(served_by(scripted_http, limits=limits), policy=policy) as chain:
        for _ in range(3):
            with pytest.raises(ProviderError):
                await answer_of(chain)
        assert text_of(await answer_of(chain)) == "healthy"


async def test_a_failed_stream_does_not_turn_streaming_off(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(error(400, "broken"), chat("ok"))
    async with chain_over(served_by(scripted_http)) as chain:
        with pytest.raises(ProviderError):
            await answer_of(chain)
        await answer_of(chain)
    assert [r.body["stream"] for r in scripted_http.requests] == [True, True]


async def test_a_large_event_is_taken_and_a_huge_one_refused(scripted_http: ScriptedHttp) -> None:
    large = "x" * 600_000
    huge = b"data: " + b"y" * 20_000_000
    scripted_http.script(chat(large))
    async with chain_over(served_by(scripted_http)) as chain:
        assert text_of(await answer_of(chain)) == large
        scripted_http.default = lambda _r: [head(), chunk(huge), Fault.HANG]
        with pytest.raises(ProviderError) as caught:
            await answer_of(chain)
    assert caught.value.code == "event_too_large"


async def test_a_foreign_signature_is_stripped_from_what_is_really_sent(
    scripted_http: ScriptedHttp,
) -> None:
    from hermes.messages import Message, ReasoningPart, TextPart

    made = served_by(scripted_http, protocol="anthropic")
    thought = ReasoningPart(text="hm", signature="sig", origin=made.origin)
    history = (
        text_message("user", "hi"),
        Message(role="assistant", parts=(thought, TextPart(text="Hello"))),
        text_message("user", "more"),
    )
    scripted_http.script(
        error(400, "messages.1.content.0: Invalid signature in thinking block"),
        stream(*anthropic_events("ok")),
    )
    async with chain_over(made) as chain:
        deltas = await answer_of(chain, replace(asking(), messages=history))
    assert text_of(deltas) == "ok"
    one, two = scripted_http.requests
    assert "thinking" in json.dumps(one.body["messages"])
    assert "thinking" not in json.dumps(two.body["messages"])


async def test_an_error_never_holds_the_key(
    scripted_http: ScriptedHttp, caplog: pytest.LogCaptureFixture
) -> None:
    scripted_http.script(error(401, "Incorrect API key provided: key-of-the-test"))
    async with chain_over(served_by(scripted_http)) as chain:
        with pytest.raises(ProviderError) as caught:
            await answer_of(chain)
    assert "key-of-the-test" not in caught.value.message + caplog.text
    assert "key-of-the-test" not in repr(served_by(scripted_http))


async def test_a_drop_leaves_one_line_that_tells_what_happened(
    scripted_http: ScriptedHttp, caplog: pytest.LogCaptureFixture
) -> None:
    arrived = asyncio.Event()
    pieces = [chunk(delta(content="x"))] * 47
    scripted_http.script([head(x_request_id="req-7"), *pieces, arrived, Fault.RESET])
    seen: list[Any] = []
    async with chain_over(served_by(scripted_http)) as chain:
        telling = asyncio.ensure_future(into(seen, chain))
        await wait_until(lambda: text_of(seen) == "x" * 47)
        arrived.set()
        assert await telling == "provider_connection"
    [line] = [r.getMessage() for r in caplog.records if "model call failed" in r.getMessage()]
    for word in (
        "endpoint=custom",
        "request_id=req-7",
        "bytes=",
        "elapsed=",
        "attempt=1/3",
        "cause=ProviderConnectionError(",
        "ttfb=0.",
        "chunks=",
    ):
        assert word in line
    assert " < Client" in line
    size = sum(len(delta(content="x")) for _ in range(47))
    assert f"bytes={size} " in line
    assert "key-of-the-test" not in line
    assert "127.0.0.1" not in line


async def test_calls_of_one_endpoint_are_bounded(scripted_http: ScriptedHttp) -> None:
    gate = asyncio.Event()
    scripted_http.default = lambda _r: [gate, *chat("ok")]
    limits = Limits(max_concurrent=2)
    async with chain_over(served_by(scripted_http, limits=limits)) as chain:
        running = [asyncio.ensure_future(answer_of(chain)) for _ in range(5)]
        await scripted_http.request(2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(scripted_http.requests) == 2
        gate.set()
        assert [text_of(deltas) for deltas in await asyncio.gather(*running)] == ["ok"] * 5
