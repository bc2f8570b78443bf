"""Which endpoint is asked, what is remembered of it, and what is said when none answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from hermes.errors import ProviderError, ProviderStatusError
from hermes.events import Finish, Retrying
from hermes.messages import Message, ModelOptions, ReasoningPart, TextPart, text_message
from hermes.providers.chain import ProviderChain
from hermes.providers.http import Transport
from hermes.providers.limits import Limits
from hermes.providers.registry import Endpoint
from support.agents import answer_of, asking, no_sleep, served_by, text_of
from support.manual_clock import ManualClock
from support.scripted_http import (
    DONE,
    Answer,
    Fault,
    ScriptedHttp,
    anthropic_events,
    chat,
    data,
    delta,
    error,
    stream,
    whole,
)

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def other() -> AsyncIterator[ScriptedHttp]:
    async with ScriptedHttp() as server:
        yield server


@asynccontextmanager
async def shared() -> AsyncIterator[Transport]:
    transport = Transport()
    try:
        yield transport
    finally:
        await transport.aclose()


def chain(transport: Transport, *endpoints: Endpoint, clock: ManualClock) -> ProviderChain:
    return ProviderChain(endpoints, transport, sleep=clock.sleep, clock=clock)


async def failure_of(provider: ProviderChain, **fields: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await answer_of(provider, asking(**fields))
    return caught.value


async def test_a_dropped_connection_is_tried_again_without_a_wait(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.script([Fault.RESET], [Fault.RESET], chat("ok"))
    clock = ManualClock()
    async with shared() as transport:
        deltas = await answer_of(chain(transport, served_by(scripted_http), clock=clock))
    assert text_of(deltas) == "ok"
    assert clock.waits[0] == 0.0
    assert clock.waits[1] > 0.0
    assert len({request.peer for request in scripted_http.requests}) == 3


async def test_every_retry_is_announced_with_its_cause_and_its_goal(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.default = lambda _: error(529, "Overloaded")
    other.default = lambda _: chat("ok")
    clock = ManualClock()
    async with shared() as transport:
        endpoints = (served_by(scripted_http, name="one"), served_by(other, name="two"))
        deltas = await answer_of(chain(transport, *endpoints, clock=clock))
    notices = [item for item in deltas if isinstance(item, Retrying)]
    assert [(n.attempt, n.code, n.endpoint) for n in notices] == [
        (1, "overloaded", "one"),
        (2, "overloaded", "two"),
    ]
    assert [n.delay for n in notices] == clock.waits


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(401, "Incorrect API key provided"), "authentication"),
        (error(403, "not for you"), "permission"),
        (error(404, "no such model"), "not_found"),
        (error(402, "credit balance is too low"), "quota_exhausted"),
        (error(400, "something is odd"), "provider_request"),
    ],
)
async def test_what_would_fail_again_goes_to_the_fallback_at_once(
    scripted_http: ScriptedHttp, other: ScriptedHttp, answer: Answer, code: str
) -> None:
    scripted_http.default = lambda _: answer
    other.default = lambda _: chat("ok")
    async with shared() as transport:
        provider = ProviderChain((served_by(scripted_http), served_by(other)), transport)
        deltas = await answer_of(provider)
        assert text_of(deltas) == "ok"
        assert [item.code for item in deltas if isinstance(item, Retrying)] == [code]
        assert (
            await failure_of(ProviderChain((served_by(scripted_http),), transport))
        ).code == code
    assert len(scripted_http.requests) == 2


async def test_a_conversation_that_is_too_long_goes_only_to_a_larger_window(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.default = lambda _: error(400, "maximum context length is 8192 tokens")
    other.default = lambda _: chat("ok")
    first = served_by(scripted_http, context_length=8192)
    async with shared() as transport:
        for window, answers in ((4096, False), (0, False), (8192, False), (131072, True)):
            second = served_by(other, context_length=window)
            provider = ProviderChain((first, second), transport)
            if answers:
                assert text_of(await answer_of(provider)) == "ok"
            else:
                assert (await failure_of(provider)).code == "context_length_exceeded"
    assert len(other.requests) == 1


async def test_a_length_error_inside_the_stream_is_told_once_and_by_its_name(
    scripted_http: ScriptedHttp,
) -> None:
    words = "maximum context length is 163840 tokens"
    event = {"error_type": "context_length_exceeded", "error_message": words}
    scripted_http.default = lambda _: stream(data(event))
    async with shared() as transport:
        failure = await failure_of(ProviderChain((served_by(scripted_http),), transport))
    assert failure.code == "context_length_exceeded"
    assert "163840" in failure.message
    assert len(scripted_http.requests) == 1


async def test_when_all_fail_the_message_tells_of_each(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.default = lambda _: error(401, "bad key")
    other.default = lambda _: error(404, "no such model")
    async with shared() as transport:
        endpoints = (served_by(scripted_http, name="one"), served_by(other, name="two"))
        failure = await failure_of(ProviderChain(endpoints, transport))
    assert failure.code == "not_found"
    assert "one: bad key" in failure.message
    assert "two: no such model" in failure.message


async def test_the_fallback_is_asked_for_its_own_model_and_named_by_the_answer(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.default = lambda _: error(401, "no")
    other.default = lambda _: stream(delta(model="", content="ok", finish="stop"), DONE)
    async with shared() as transport:
        second = served_by(other, model="second")
        provider = ProviderChain((served_by(scripted_http), second), transport)
        deltas = await answer_of(provider, replace(asking(), model="asked"))
    assert scripted_http.requests[0].body["model"] == "asked"
    assert other.requests[0].body["model"] == "second"
    assert isinstance(deltas[-1], Finish)
    assert (deltas[-1].model, deltas[-1].origin) == ("second", second.origin)


async def test_a_rate_limit_of_the_fallback_leaves_the_primary_alone(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.script([Fault.RESET], [Fault.RESET], [Fault.RESET], chat("primary"))
    other.default = lambda _: error(429, "slow down", retry_after="86400")
    async with shared() as transport:
        provider = ProviderChain(
            (served_by(scripted_http), served_by(other)), transport, sleep=no_sleep
        )
        assert (await failure_of(provider)).code == "rate_limited"
        asked = len(other.requests)
        assert text_of(await answer_of(provider)) == "primary"
    assert len(other.requests) == asked


async def test_a_long_retry_after_falls_back_now_and_again_next_time(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.script(error(429, "slow down", retry_after="86400"), chat("primary"))
    other.default = lambda _: chat("fallback")
    clock = ManualClock()
    async with shared() as transport:
        provider = chain(transport, served_by(scripted_http), served_by(other), clock=clock)
        assert text_of(await answer_of(provider)) == "fallback"
        assert text_of(await answer_of(provider)) == "fallback"
        assert len(scripted_http.requests) == 1
        clock.advance(601.0)
        assert text_of(await answer_of(provider)) == "primary"
    assert sum(clock.waits) == 0


async def test_an_endpoint_that_failed_again_and_again_rests_and_comes_back(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.default = lambda _: error(500, "boom")
    other.default = lambda _: chat("fallback")
    clock = ManualClock()
    async with shared() as transport:
        provider = chain(transport, served_by(scripted_http), served_by(other), clock=clock)
        for _ in range(3):
            await answer_of(provider)
        tried = len(scripted_http.requests)
        await answer_of(provider)
        assert len(scripted_http.requests) == tried
        scripted_http.default = lambda _: chat("primary")
        clock.advance(31.0)
        assert text_of(await answer_of(provider)) == "primary"
        assert text_of(await answer_of(provider)) == "primary"


async def test_a_resting_endpoint_is_asked_when_it_is_the_only_one_left(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.script(error(429, "slow", retry_after="86400"), chat("primary"))
    other.script(chat("fallback"), error(401, "no"))
    clock = ManualClock()
    async with shared() as transport:
        provider = chain(transport, served_by(scripted_http), served_by(other), clock=clock)
        assert text_of(await answer_of(provider)) == "fallback"
        assert text_of(await answer_of(provider)) == "primary"


async def test_a_silent_endpoint_is_left_at_once_for_the_fallback(
    scripted_http: ScriptedHttp, other: ScriptedHttp
) -> None:
    scripted_http.default = lambda _: [Fault.HANG]
    other.default = lambda _: chat("fallback")
    limits = Limits(first_content=0.05)
    async with shared() as transport:
        endpoints = (served_by(scripted_http, limits=limits), served_by(other))
        assert text_of(await answer_of(ProviderChain(endpoints, transport))) == "fallback"
    assert len(scripted_http.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        error(429, "upstream temporarily unavailable"),
        error(429, "The model is at capacity, quota shared by all"),
    ],
)
async def test_a_limit_that_is_not_the_keys_costs_seconds_only(
    scripted_http: ScriptedHttp, answer: Answer
) -> None:
    scripted_http.script(answer, chat("ok"), chat("ok"))
    clock = ManualClock()
    async with shared() as transport:
        provider = chain(transport, served_by(scripted_http), clock=clock)
        assert text_of(await answer_of(provider)) == "ok"
        assert text_of(await answer_of(provider)) == "ok"
    assert 0.0 < sum(clock.waits) < 5.0


async def test_what_was_refused_is_remembered_by_every_chain_of_the_process(
    scripted_http: ScriptedHttp,
) -> None:
    refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    scripted_http.script(error(400, refusal))
    scripted_http.default = lambda _: chat("ok")
    options = ModelOptions(max_output_tokens=50)
    async with shared() as transport:
        for model in ("m", "m", "another"):
            provider = ProviderChain((served_by(scripted_http, model=model),), transport)
            await answer_of(provider, asking(options=options))
    sent = [request.body for request in scripted_http.requests]
    assert ["max_completion_tokens" in body for body in sent] == [False, True, True, False]


async def test_refused_parameters_are_dropped_one_by_one(scripted_http: ScriptedHttp) -> None:
    refused = ["stream_options", "temperature", "seed"]
    scripted_http.script(*(error(400, f"Unknown parameter: '{name}'.") for name in refused))
    scripted_http.default = lambda _: chat("ok")
    options = ModelOptions(temperature=0.2, seed=7, top_p=0.9)
    async with shared() as transport:
        provider = ProviderChain((served_by(scripted_http),), transport)
        deltas = await answer_of(provider, asking(options=options))
    assert text_of(deltas) == "ok"
    last = scripted_http.requests[-1].body
    assert not set(refused) & set(last)
    assert last["top_p"] == 0.9
    assert len(scripted_http.requests) == 4


async def test_a_refusal_that_teaches_nothing_new_ends(scripted_http: ScriptedHttp) -> None:
    scripted_http.default = lambda _: error(400, "Unknown parameter: 'temperature'.")
    async with shared() as transport:
        provider = ProviderChain((served_by(scripted_http),), transport)
        failure = await failure_of(provider, options=ModelOptions(temperature=0.2))
    assert isinstance(failure, ProviderStatusError)
    assert failure.code == "unsupported_parameter"
    assert len(scripted_http.requests) == 2


async def test_a_bad_signature_is_stripped_for_this_conversation_only(
    scripted_http: ScriptedHttp,
) -> None:
    made = served_by(scripted_http, protocol="anthropic")
    thought = ReasoningPart(text="hm", signature="sig", origin=made.origin)
    history = (
        text_message("user", "hi"),
        Message(role="assistant", parts=(thought, TextPart(text="Hello"))),
        text_message("user", "more"),
    )
    bad = error(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
    scripted_http.script(bad, stream(*anthropic_events("ok")), stream(*anthropic_events("ok")))
    async with shared() as transport:
        provider = ProviderChain((made,), transport)
        for _ in range(2):
            await answer_of(provider, replace(asking(), messages=history))
    kinds = ["signature" in request.raw.decode() for request in scripted_http.requests]
    assert kinds == [True, False, True]


async def test_reasoning_of_another_endpoint_is_never_sent(scripted_http: ScriptedHttp) -> None:
    made = served_by(scripted_http, protocol="anthropic")
    thought = ReasoningPart(text="hm", signature="sig", origin="anthropic:elsewhere")
    history = (
        text_message("user", "hi"),
        Message(role="assistant", parts=(thought, TextPart(text="Hello"))),
        text_message("user", "more"),
    )
    scripted_http.script(stream(*anthropic_events("ok")))
    async with shared() as transport:
        await answer_of(ProviderChain((made,), transport), replace(asking(), messages=history))
    assert "sig" not in scripted_http.requests[0].raw.decode()


async def test_without_a_model_the_endpoints_first_one_is_asked_for_once(
    scripted_http: ScriptedHttp,
) -> None:
    def answer(request: Any) -> Answer:
        if request.path == "/v1/models":
            return whole({"data": [{"id": "found"}, {"id": "second"}]})
        return chat("ok")

    scripted_http.default = answer
    async with shared() as transport:
        provider = ProviderChain((served_by(scripted_http, model=""),), transport)
        for _ in range(2):
            assert text_of(await answer_of(provider)) == "ok"
    assert [request.path for request in scripted_http.requests] == [
        "/v1/models",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    assert scripted_http.requests[1].body["model"] == "found"


async def test_a_stream_of_nothing_is_a_failed_call_and_said_so(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.default = lambda _: stream()
    async with shared() as transport:
        provider = ProviderChain((served_by(scripted_http),), transport, sleep=no_sleep)
        failure = await failure_of(provider)
    assert failure.code == "empty_answer"
    assert len(scripted_http.requests) == 3


async def test_calls_of_two_models_do_not_wait_for_each_other(
    scripted_http: ScriptedHttp,
) -> None:
    gate = asyncio.Event()
    scripted_http.default = lambda _: [gate, *chat("ok")]
    limits = Limits(max_concurrent=1)
    async with shared() as transport:
        chains = [
            ProviderChain((served_by(scripted_http, model=model, limits=limits),), transport)
            for model in ("a", "a", "b")
        ]
        running = [asyncio.ensure_future(answer_of(provider)) for provider in chains]
        await scripted_http.request(2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert sorted(r.body["model"] for r in scripted_http.requests) == ["a", "b"]
        gate.set()
        await asyncio.gather(*running)
    assert len(scripted_http.requests) == 3
