"""Connections: when one is used again, when not, and what is said when one fails."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing

import aiohttp
import pytest
import pytest_asyncio

from hermes.errors import ProviderConnectionError, ProviderProtocolError, ProviderTimeoutError
from hermes.providers.call import Call
from hermes.providers.http import Transport, connection_error, read_some
from support.agents import asking, served_by
from support.scripted_http import (
    DONE,
    LAST,
    LIMIT,
    Fault,
    ScriptedHttp,
    chat,
    chat_events,
    chunk,
    delta,
    head,
    wait_until,
)

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def transport() -> AsyncIterator[Transport]:
    made = Transport()
    yield made
    await made.aclose()


async def run(server: ScriptedHttp, transport: Transport, text: str = "hi") -> str:
    made = served_by(server)
    call = Call(transport, made, made.quirks, asking(text))
    async with asyncio.timeout(LIMIT), aclosing(call.deltas()) as deltas:
        return "".join([item.text async for item in deltas if item.kind == "text_delta"])


async def test_a_fresh_request_takes_a_connection_of_its_own(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.default = lambda _: [head(), chunk(b"ok"), LAST]
    for fresh in (False, False, True, True):
        async with transport.request(
            "POST", scripted_http.base_url, headers={}, body=b"{}", fresh=fresh
        ) as response:
            assert await response.read() == b"ok"
    assert scripted_http.connections == 3


async def test_calls_one_after_the_other_share_a_connection(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.default = lambda _: chat("ok")
    for _ in range(5):
        assert await run(scripted_http, transport) == "ok"
    assert scripted_http.connections == 1


async def test_a_connection_is_kept_though_the_end_comes_after_the_marker(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    gate = asyncio.Event()
    events = b"".join(chat_events(("ok",)))
    scripted_http.default = lambda _: [head(), chunk(events), gate, LAST]
    assert await run(scripted_http, transport) == "ok"
    gate.set()
    await wait_until(lambda: not transport._draining)
    assert await run(scripted_http, transport) == "ok"
    assert scripted_http.connections == 1


async def test_reading_stops_at_the_marker(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script([head(), chunk(delta(content="ok", finish="stop") + DONE), Fault.HANG])
    assert await run(scripted_http, transport) == "ok"


async def test_nothing_that_arrived_before_a_break_is_lost(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script([head(), chunk(b"one"), chunk(b"two"), Fault.RESET])
    async with transport.request("POST", scripted_http.base_url, headers={}) as response:
        request = await scripted_http.request(1)
        await asyncio.wait_for(request.hung_up.wait(), LIMIT)
        await wait_until(lambda: response.content.exception() is not None)
        received = b""
        with pytest.raises(ProviderConnectionError):  # noqa: PT012 - it fails at the end
            while True:
                received += await read_some(response)
    assert received == b"onetwo"


async def test_a_slow_reader_gets_every_word_before_the_break(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    more = asyncio.Event()
    scripted_http.script(
        [head(), chunk(delta(content="a")), more, chunk(delta(content="b")),
         chunk(delta(content="c")), Fault.RESET]
    )  # fmt: skip
    made = served_by(scripted_http)
    texts: list[str] = []
    with pytest.raises(ProviderConnectionError):  # noqa: PT012 - it fails at the end
        async with (
            asyncio.timeout(LIMIT),
            aclosing(Call(transport, made, made.quirks, asking()).deltas()) as deltas,
        ):
            async for item in deltas:
                texts.append(item.text)
                more.set()
                request = scripted_http.requests[0]
                await request.hung_up.wait()
                for _ in range(10):
                    await asyncio.sleep(0)
    assert "".join(texts) == "abc"


async def test_a_large_body_arrives_whole_and_with_its_length(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script(chat("ok"))
    text = "ä" * 2_000_000
    assert await run(scripted_http, transport, text) == "ok"
    sent = json.loads(scripted_http.requests[0].raw)
    assert sent["messages"][-1]["content"] == text


async def test_a_lone_surrogate_is_sent_as_the_replacement_character(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script(chat("ok"))
    assert await run(scripted_http, transport, "hi \ud83d there \U0001f600") == "ok"
    sent = scripted_http.requests[0].body["messages"][-1]["content"]
    assert sent == "hi \ufffd there \U0001f600"


async def test_a_redirect_is_not_followed_and_said(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    async with ScriptedHttp() as other:
        moved = head(307, length=0, location=f"{other.base_url}/x?token=abc")
        scripted_http.script([moved])
        with pytest.raises(Exception, match="redirects") as caught:
            await run(scripted_http, transport)
        assert "token" not in str(caught.value)
        assert not other.requests


async def test_a_web_page_is_no_answer(scripted_http: ScriptedHttp, transport: Transport) -> None:
    page = b"<html>welcome</html>"
    scripted_http.script([head(content_type="text/html", length=len(page)) + page])
    with pytest.raises(ProviderProtocolError, match="web page") as caught:
        await run(scripted_http, transport)
    assert not caught.value.retryable


async def test_what_is_not_http_is_said_so(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script([b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Fault.CLOSE])
    with pytest.raises(ProviderProtocolError, match="HTTP"):
        await run(scripted_http, transport)


async def test_a_refused_connection_names_the_reason_and_no_address(
    transport: Transport,
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(ProviderConnectionError, match="connection refused") as caught:
            async with transport.request("POST", url, headers={}, body=b"{}"):
                pass
    assert "127.0.0.1" not in caught.value.message
    assert caught.value.retryable


async def test_a_header_that_cannot_be_sent_is_not_shown(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    with pytest.raises(ProviderConnectionError) as caught:
        async with transport.request(
            "POST", scripted_http.base_url, headers={"X-Key": "sk-secret\r\nEvil: 1"}
        ):
            pass
    assert "secret" not in caught.value.message
    assert not caught.value.retryable


async def test_errors_of_the_library_are_told_apart_subclass_before_base() -> None:
    assert isinstance(connection_error(aiohttp.ConnectionTimeoutError()), ProviderTimeoutError)
    assert isinstance(connection_error(aiohttp.ClientPayloadError()), ProviderConnectionError)
    assert "without an answer" in connection_error(aiohttp.ServerDisconnectedError()).message
    assert "broken pipe" in connection_error(BrokenPipeError(32, "x")).message


async def test_closing_twice_is_closing_once(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.default = lambda _: chat("ok")
    await run(scripted_http, transport)
    await transport.aclose()
    await transport.aclose()
    await wait_until(lambda: not scripted_http.open)
    assert await run(scripted_http, transport) == "ok"


async def test_closing_ends_a_drain(scripted_http: ScriptedHttp, transport: Transport) -> None:
    scripted_http.script([head(), chunk(delta(content="ok", finish="stop") + DONE), Fault.HANG])
    await run(scripted_http, transport)
    await transport.aclose()
    await wait_until(lambda: not scripted_http.open)
