"""Chat completions over real HTTP: what a client of OpenAI's API sees."""

import asyncio
import io
import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from gateway.conftest import KEY, Server
from hermes.agent.budget import Budget
from hermes.agent.cancel import TurnControl
from support.agents import CountingTool, calling
from support.scripted_http import (
    DONE,
    LAST,
    Fault,
    ScriptedHttp,
    chat,
    chat_events,
    chunk,
    data,
    delta,
    error,
    head,
    stream,
    wait_until,
)  # fmt: skip
from support.sse_text import events_of

pytestmark = pytest.mark.asyncio

Serve = Callable[..., Any]
HI = {"messages": [{"role": "user", "content": "hi"}]}
STREAM = HI | {"stream": True}


async def streamed(server: Server, body: Any = STREAM, **keywords: Any) -> list[Any]:
    """The payloads of a stream: objects, strings, and (event, object) for named events."""
    async with server.post(body, **keywords) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        return events_of(await response.read())


def content(events: list[Any]) -> str:
    pieces = [event["choices"] for event in events if isinstance(event, dict)]
    return "".join(c[0]["delta"].get("content") or "" for c in pieces if c)


async def test_a_whole_answer_has_every_member_that_clients_read(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("Hello"))
    async with server.post(HI | {"model": "gpt-x"}) as response:
        body = await response.json()
        assert response.status == 200
    assert body["object"] == "chat.completion"
    assert body["model"] == "gpt-x"
    [choice] = body["choices"]
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "Hello", "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert body["usage"]["total_tokens"] == 10


async def test_a_stream_is_chunks_of_one_id_then_done(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("Hel", "lo"))
    events = await streamed(server)
    assert events[-1] == "[DONE]"
    assert len({event["id"] for event in events[:-1]}) == 1
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert content(events) == "Hello"
    assert [e["choices"][0]["finish_reason"] for e in events[:-1]][-1] == "stop"
    assert all(not event.get("usage") for event in events[:-1])


async def test_usage_comes_once_last_and_equals_the_whole_answers(serve: Serve) -> None:
    server = await serve()
    details = {
        "prompt_tokens": 100, "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 80},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }  # fmt: skip
    answer = stream(
        delta(content="x"), delta(finish="stop"), data({"choices": [], "usage": details}), DONE
    )
    server.provider.script(answer, answer)
    events = await streamed(server, STREAM | {"stream_options": {"include_usage": True}})
    async with server.post(HI) as response:
        whole = (await response.json())["usage"]
    assert events[-2]["choices"] == []
    assert events[-2]["usage"] == whole
    assert whole["prompt_tokens_details"]["cached_tokens"] == 80
    assert whole["completion_tokens_details"]["reasoning_tokens"] == 5
    assert all(event["usage"] is None for event in events[:-2])


async def test_openais_own_client_reads_both_forms(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("Hello"), chat("Hel", "lo"))
    async with openai.AsyncOpenAI(
        base_url=server.url("/v1"), api_key=KEY, _strict_response_validation=True, max_retries=0
    ) as client:
        messages: Any = HI["messages"]
        whole = await client.chat.completions.create(model="m", messages=messages)
        pieces = await client.chat.completions.create(model="m", messages=messages, stream=True)
        text = "".join([c.choices[0].delta.content or "" async for c in pieces])
        models = await client.models.list()
    assert whole.choices[0].message.content == text == "Hello"
    assert [model.id for model in models.data] == ["hermes-agent"]


async def test_truncation_is_told_apart_from_an_answer(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("part", finish="length"), chat("part", finish="length"))
    async with server.post(HI) as response:
        body = await response.json()
        assert response.headers["X-Hermes-Completed"] == "false"
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["choices"][0]["message"]["content"] == "part"
    events = await streamed(server)
    assert events[-2]["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (lambda: error(401, "bad key sk-abcdefghijklmnopqrstuvwxyz123456"), 502, "authentication"),
        (lambda: error(400, "maximum context length is 10 tokens"), 400, "context_length_exceeded"),
        (lambda: error(418, "no"), 502, "provider_request"),
    ],
)
async def test_a_failure_without_a_word_is_an_error_and_never_an_answer(
    serve: Serve, answer: Callable[[], Any], status: int, code: str
) -> None:
    server = await serve()
    server.provider.script(answer(), answer())
    async with server.post(HI) as response:
        body = await response.json()
        assert response.status == status
    assert set(body["error"]) >= {"message", "type", "param", "code"}
    assert body["error"]["code"] == code
    assert body["error"]["hermes"]["failed"] is True
    assert "sk-abcdefgh" not in json.dumps(body)
    events = await streamed(server)
    assert events[-1] == "[DONE]"
    assert events[-2]["choices"][0]["finish_reason"] == "error"
    assert events[-2]["error"]["code"] == code
    assert content(events) == ""


async def test_a_break_after_words_ends_with_an_error_frame_and_done(serve: Serve) -> None:
    server = await serve()
    server.provider.script([head(), chunk(delta(content="Half")), Fault.RESET])
    events = await streamed(server)
    assert content(events) == "Half"
    assert events[-2]["error"]["code"] == "provider_connection"
    assert events[-2]["hermes"] == {
        "completed": False, "partial": True, "failed": True, "error_code": "provider_connection",
        "tools": {"attempted": 0, "succeeded": 0, "failed": 0},
    }  # fmt: skip
    assert events[-1] == "[DONE]"


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":', b"[1,2,3]", b'"x"', b"", b'{"messages":null}', b'{"messages":[]}',
        b'{"messages":["hi"]}', b'{"messages":[{"role":"user","content":null}]}',
        b'{"messages":[{"role":"user","content":""}]}',
        b'{"messages":[{"role":"king","content":"x"}]}',
        b'{"messages":[{"role":"user","content":[{"type":"file"}]}]}',
        b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///x"}}]}]}',
        b'{"messages":[{"role":"user","content":"x"}],"temperature":9}',
        b'{"messages":[{"role":"user","content":"x"}],"temperature":"hot"}',
        b'{"messages":[{"role":"user","content":"x"}],"n":2}',
        b'{"messages":[{"role":"user","content":"x"}],"stream":"perhaps"}',
        b'{"messages":[{"role":"user","content":"x"}],"reasoning_effort":"banana"}',
        b'{"messages":[{"role":"user","content":"x"}],"tool_choice":"required"}',
        b"\xff\xfe",
    ],
)  # fmt: skip
async def test_a_bad_body_is_a_400_that_says_where(serve: Serve, body: bytes) -> None:
    server = await serve()
    async with server.post(body) as response:
        answer = await response.json()
        assert response.status == 400
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["message"]
    assert server.provider.requests == []


async def test_a_body_over_the_limit_is_a_413(serve: Serve) -> None:
    server = await serve()
    large = io.BytesIO(b'{"messages":"' + b"x" * 10_000_001)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    url = server.url("/v1/chat/completions")
    async with server.http.post(url, data=large, headers=headers) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (
            413,
            "body_too_large",
        )


async def test_a_lone_surrogate_becomes_a_replacement_character(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("ok"), chat("ok"))
    for stream_it in (b"true", b"false"):
        body = (
            b'{"stream":' + stream_it + b',"messages":[{"role":"user",'
            b'"content":"hi \\ud83d there \\ud83d\\ude00"}]}'
        )
        async with server.post(body) as response:
            assert response.status == 200
            assert b"ok" in await response.read()
    for request in server.provider.requests:
        assert request.body["messages"][-1]["content"] == "hi \ufffd there \U0001f600"


async def test_images_reach_the_model_and_plain_parts_become_a_string(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("a cat"), chat("ok"))
    url = "data:image/png;base64,iVBORw0KGgo="
    parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url}}]
    async with server.post({"messages": [{"role": "user", "content": parts}]}) as response:
        assert response.status == 200
    async with server.post({"messages": [{"role": "user", "content": parts[:1]}]}) as response:
        assert response.status == 200
    first, second = server.provider.requests
    assert first.body["messages"][-1]["content"][1]["image_url"]["url"] == url
    assert second.body["messages"][-1]["content"] == "what?"


async def test_reasoning_is_its_own_field_and_only_on_request(serve: Serve) -> None:
    server = await serve()
    answer = stream(delta(reasoning_content="plan"), *chat_events(("42",)))
    server.provider.script(answer, answer, answer, answer)
    asked, silent = HI | {"include_reasoning": True}, HI
    events = await streamed(server, asked | {"stream": True})
    pieces = [e["choices"][0]["delta"] for e in events if isinstance(e, dict)]
    assert "".join(p.get("reasoning_content") or "" for p in pieces) == "plan"
    assert content(events) == "42"
    assert "plan" not in json.dumps(await streamed(server, silent | {"stream": True}))
    async with server.post(asked) as response:
        message = (await response.json())["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("plan", "42")
    async with server.post(silent) as response:
        assert "plan" not in await response.text()


async def test_sampling_parameters_reach_the_model_each_with_its_request(serve: Serve) -> None:
    server = await serve()
    server.provider.default = lambda _r: chat("ok")
    wishes = [
        {"reasoning_effort": "low", "temperature": 0.1},
        {"reasoning_effort": "high", "seed": 7},
    ]
    answers = await asyncio.gather(*(server.post(HI | wish) for wish in wishes))
    assert [answer.status for answer in answers] == [200, 200]
    sent = sorted((r.body for r in server.provider.requests), key=lambda b: b["reasoning_effort"])
    assert [(b["reasoning_effort"], b.get("temperature"), b.get("seed")) for b in sent] == [
        ("high", None, 7),
        ("low", 0.1, None),
    ]


async def test_the_clients_own_tools_are_not_dropped_in_silence(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("ok"))
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    async with server.post(HI | {"tools": [tool]}) as response:
        assert response.headers["X-Hermes-Ignored-Parameters"] == "tools"


async def test_tool_progress_comes_to_those_who_ask_and_breaks_nobody_else(serve: Serve) -> None:
    server = await serve(tools=(CountingTool(parameters={"type": "object"}),))
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    for _ in range(2):
        server.provider.script(calling(("a", "count", json.dumps({"q": secret}))), chat("done"))
    plain = await streamed(server)
    assert all(event == "[DONE]" or event["choices"] for event in plain)
    asked = await streamed(server, headers={"X-Hermes-Session-Id": "my-session"})
    named = [event for event in asked if isinstance(event, tuple)]
    assert [name for name, _ in named] == ["hermes.tool.progress"] * 2
    assert [(e["tool"], e["toolCallId"], e["status"]) for _, e in named] == [
        ("count", "a", "running"),
        ("count", "a", "completed"),
    ]
    assert secret not in json.dumps(asked)


async def test_text_is_gathered_but_never_moved_past_a_tool(serve: Serve) -> None:
    server = await serve(tools=(CountingTool(),), tool_progress="events")
    pieces = [delta(content=f"{n} ") for n in range(500)]
    call = calling(("a", "count", "{}"))[1:]
    server.provider.script([head(), *(chunk(p) for p in pieces), *call], chat("after"))
    events = await streamed(server)
    tool = next(n for n, event in enumerate(events) if isinstance(event, tuple))
    assert content(events[:tool]) == "".join(f"{n} " for n in range(500))
    assert content(events[tool:]) == "\n\nafter"
    assert len(events) < 250


async def test_silence_is_filled_with_comments(serve: Serve) -> None:
    gate = asyncio.Event()

    async def wait(_arguments: Any) -> str:
        await gate.wait()
        return "ok"

    server = await serve(tools=(CountingTool(act=wait),), keepalive_seconds=0.05)
    server.provider.script(calling(("a", "count", "{}")), chat("done"))
    async with server.post(STREAM) as response:
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Accel-Buffering"] == "no"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        seen = b""
        while seen.count(b": keepalive") < 3:
            seen += await asyncio.wait_for(response.content.readany(), 20)
        gate.set()
        seen += await response.read()
    assert content(events_of(seen)) == "done"


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_client_that_leaves_stops_the_model_and_its_tools(
    serve: Serve, streaming: bool
) -> None:
    stopped = asyncio.Event()
    running = asyncio.Event()

    async def wait(_arguments: Any) -> str:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    server = await serve(tools=(CountingTool(act=wait),))
    server.provider.script(calling(("a", "count", "{}")), [Fault.HANG])
    request = asyncio.ensure_future(read_all(server, HI | {"stream": streaming}))
    await asyncio.wait_for(running.wait(), 20)
    request.cancel()
    await asyncio.wait_for(stopped.wait(), 20)
    await wait_until(lambda: not server.adapter._slots)
    assert len(server.provider.requests) == 1
    assert server.adapter._inflight_agent_runs == 0


async def read_all(server: Server, body: Any, **keywords: Any) -> bytes:
    async with server.post(body, **keywords) as response:
        return await response.read()


async def test_a_client_that_leaves_while_the_model_is_silent_closes_the_wire(serve: Serve) -> None:
    server = await serve()
    server.provider.script([head(), chunk(delta(content="a")), Fault.HANG])
    async with server.post(STREAM) as response:
        await response.content.readany()
        upstream = await server.provider.request(1)
        response.close()
        await asyncio.wait_for(upstream.hung_up.wait(), 20)


async def test_a_session_header_continues_the_stored_conversation(serve: Serve) -> None:
    server = await serve()
    server.provider.script(chat("blue"), chat("It is blue."))
    mine = {"X-Hermes-Session-Id": "mine"}
    for text in ("the colour is blue", "which colour?"):
        body = {"messages": [{"role": "user", "content": text}]}
        async with server.post(body, headers=mine) as response:
            assert response.headers["X-Hermes-Session-Id"] == "mine"
    sent = server.provider.requests[1].body["messages"]
    assert [m["content"] for m in sent[1:]] == ["the colour is blue", "blue", "which colour?"]
    [session] = (await server.runtime.store.list())[0]
    assert (session.id, session.source, session.message_count) == ("mine", "api_server", 4)


async def test_a_one_shot_chat_leaves_no_session_behind(serve: Serve) -> None:
    server = await serve()
    server.provider.default = lambda _r: chat("ok")
    await asyncio.gather(*(read_all(server, HI) for _ in range(5)))
    assert (await server.runtime.store.list())[0] == ()


@pytest.mark.parametrize(
    "name", ["../../outside", "..%2fx", "a\\b", "C:x", "x" * 5000, "/etc/passwd", ".hidden"]
)
async def test_a_session_id_that_looks_like_a_path_is_refused(serve: Serve, name: str) -> None:
    server = await serve()
    async with server.post(HI, headers={"X-Hermes-Session-Id": name}) as response:
        assert response.status == 400
    assert server.provider.requests == []


async def test_a_route_alias_answers_under_its_own_name(serve: Serve) -> None:
    server = await serve(model_routes={"fast": {"model": "small"}}, strict_model_names=True)
    server.provider.default = lambda _r: chat("ok")
    async with server.post(HI | {"model": "fast"}) as response:
        assert (await response.json())["model"] == "fast"
    assert server.provider.requests[0].body["model"] == "small"
    async with server.get("/v1/models") as response:
        assert [m["id"] for m in (await response.json())["data"]] == ["hermes-agent", "fast"]
    for streaming in (True, False):
        async with server.post(HI | {"model": "no-such", "stream": streaming}) as response:
            assert response.status == 404
            assert (await response.json())["error"]["code"] == "model_not_found"


async def test_the_main_key_does_not_follow_a_route_to_another_address(serve: Serve) -> None:
    async with ScriptedHttp() as other:
        other.script(chat("elsewhere"))
        server = await serve(model_routes={"there": {"model": "x", "base_url": other.base_url}})
        async with server.post(HI | {"model": "there"}) as response:
            assert response.status == 200
        assert "authorization" not in other.requests[0].headers
        assert server.provider.requests == []


async def test_an_unknown_provider_is_the_clients_mistake(serve: Serve) -> None:
    server = await serve()
    async with server.post(HI | {"model": "m", "provider": "opnai"}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (
            400,
            "unknown_provider",
        )


async def test_over_the_cap_a_client_is_told_when_to_come_back(serve: Serve) -> None:
    server = await serve()
    server.adapter._max_concurrent_runs = 1
    gate = asyncio.Event()
    server.provider.script([gate, *chat("ok")])
    first = asyncio.ensure_future(read_all(server, HI))
    await server.provider.request(1)
    async with server.post(HI) as response:
        assert response.status == 429
        assert response.headers["Retry-After"]
    gate.set()
    assert b"ok" in await first


async def test_draining_refuses_new_turns_and_finishes_running_ones(serve: Serve) -> None:
    server = await serve()
    gate = asyncio.Event()
    server.provider.script([gate, *chat("ok")])
    first = asyncio.ensure_future(read_all(server, STREAM))
    await server.provider.request(1)
    draining = asyncio.ensure_future(server.adapter.drain(5))
    await wait_until(lambda: server.adapter._draining)
    async with server.post(HI) as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
    gate.set()
    assert await draining == 0
    assert content(events_of(await first)) == "ok"


async def test_a_turn_that_outlasts_the_drain_is_stored_and_told(serve: Serve) -> None:
    server = await serve()
    server.provider.script([head(), chunk(delta(content="Half")), Fault.HANG])
    headers = {"X-Hermes-Session-Id": "s"}
    first = asyncio.ensure_future(read_all(server, STREAM, headers=headers))
    await wait_until(lambda: bool(server.adapter._slots))
    await server.provider.request(1)
    assert await server.adapter.drain(0.05) == 1
    events = events_of(await first)
    assert events[-2]["error"]["code"] == "cancelled"
    assert events[-1] == "[DONE]"
    stored = await server.runtime.store.history("s")
    assert stored[0].text == "hi"


async def test_a_turn_that_waits_for_its_model_is_stopped_at_once(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve()
    searching = asyncio.Event()

    async def search(_choice: Any) -> Any:
        searching.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(server.runtime, "provider", search)
    first = asyncio.ensure_future(read_all(server, STREAM))
    await asyncio.wait_for(searching.wait(), 20)
    assert await asyncio.wait_for(server.adapter.drain(0.05), 20) == 1
    assert server.adapter._inflight_agent_runs == 0
    events = events_of(await first)
    assert (events[-2]["error"]["code"], events[-1]) == ("cancelled", "[DONE]")


async def test_a_turn_that_its_budget_cut_says_so(serve: Serve) -> None:
    server = await serve(tools=(CountingTool(),))
    server.runtime.budget = Budget(tokens=1)
    start, *rest = calling(("a", "count", "{}"))
    server.provider.script([start, chunk(delta(content="part")), *rest])
    async with server.post(HI) as response:
        body = await response.json()
    assert body["hermes"]["error_code"] == "budget_tokens"


async def test_json_nested_too_deep_is_a_400(serve: Serve) -> None:
    server = await serve()
    async with server.post(b"[" * 100_000 + b'"\\ud800"') as response:
        assert response.status == 400


async def test_a_slow_reader_gets_everything(serve: Serve) -> None:
    server = await serve()
    pieces = [f"{n:05d} " * 200 for n in range(500)]
    server.provider.script(chat(*pieces))
    async with server.post(STREAM) as response:
        body = b""
        while block := await response.content.read(8192):
            body += block
            await asyncio.sleep(0)
    assert content(events_of(body)) == "".join(pieces)


async def test_a_blocking_tool_does_not_hold_up_health(serve: Serve) -> None:
    server = await serve()
    server.provider.script(calling(("a", "terminal", '{"command":"sleep 0.4"}')), chat("done"))
    turn = asyncio.ensure_future(read_all(server, HI))
    await server.provider.request(1)
    while not turn.done():
        async with asyncio.timeout(0.5):
            async with server.get("/health") as response:
                assert response.status == 200
    assert b"done" in await turn


async def test_the_key_of_the_upstream_never_reaches_a_client(serve: Serve) -> None:
    server = await serve()
    key = "upstream-key-of-the-test"
    server.provider.default = lambda _r: error(401, f"Incorrect API key provided: {key}")
    async with server.post(HI) as response:
        text = await response.text()
        assert key not in text + str(response.headers)
    for path in ("/health", "/v1/models"):
        async with server.get(path) as response:
            assert key not in await response.text()


async def test_cancel_of_a_control_that_ended_does_nothing() -> None:
    control = TurnControl()
    control.bind()
    control.release()
    control.cancel()
    await asyncio.sleep(0)


async def test_an_unterminated_last_frame_of_the_provider_is_not_lost(serve: Serve) -> None:
    server = await serve()
    last = delta(finish="stop", content="lo").rstrip(b"\n")
    server.provider.script([head(), chunk(delta(content="Hel")), chunk(last), LAST])
    assert content(await streamed(server)) == "Hello"
