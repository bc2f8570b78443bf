"""What holds for every route: who may call, from where, and what wrong calls are told."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from gateway.conftest import KEY
from hermes.gateway.config import PlatformConfig
from hermes.gateway.platforms.api_server import APIServerAdapter
from support.scripted_http import chat

pytestmark = pytest.mark.asyncio

Serve = Callable[..., Any]
HI = {"messages": [{"role": "user", "content": "hi"}]}
PAGE = "http://localhost:3000"


@pytest.mark.parametrize(
    "value", ["", "Bearer wrong", f"Basic {KEY}", "Bearer", "Bearer schlüssel", KEY]
)
async def test_without_the_right_key_nothing_runs(serve: Serve, value: str) -> None:
    server = await serve()
    headers = {"Authorization": value.encode("utf-8").decode("latin-1")} if value else {}
    async with server.http.post(
        server.url("/v1/chat/completions"), json=HI, headers=headers
    ) as response:
        body = await response.json()
        assert response.status == 401
        assert response.headers["WWW-Authenticate"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["code"] == "invalid_api_key"
    assert "API_SERVER_KEY" in body["error"]["message"]
    assert "*" not in body["error"]["message"]
    assert server.provider.requests == []


async def test_health_is_open_and_says_what_it_is(serve: Serve) -> None:
    server = await serve()
    for path in ("/health", "/v1/health"):
        async with server.http.get(server.url(path)) as response:
            body = await response.json()
            assert response.status == 200
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert (body["status"], body["platform"]) == ("ok", "hermes-agent")
        assert body["version"]


async def test_a_preflight_needs_no_key_and_allows_what_clients_send(serve: Serve) -> None:
    server = await serve(cors_origins=[PAGE])
    asked = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, x-hermes-session-id",
    }
    async with server.http.options(server.url("/v1/chat/completions"), headers=asked) as response:
        assert response.status == 200
        allowed = response.headers
    assert allowed["Access-Control-Allow-Origin"] == PAGE
    assert "PATCH" in allowed["Access-Control-Allow-Methods"]
    assert "Authorization" in allowed["Access-Control-Allow-Headers"]
    assert "X-Hermes-Session-Id" in allowed["Access-Control-Allow-Headers"]


async def test_a_page_may_read_answers_errors_and_streams(serve: Serve) -> None:
    server = await serve(cors_origins=[PAGE])
    server.provider.default = lambda _r: chat("ok")
    origin = {"Origin": PAGE}
    async with server.post(HI, headers=origin | {"Authorization": "Bearer no"}) as response:
        assert (response.status, response.headers["Access-Control-Allow-Origin"]) == (401, PAGE)
    for body in (HI, HI | {"stream": True}):
        async with server.post(body, headers=origin) as response:
            assert response.headers["Access-Control-Allow-Origin"] == PAGE
            assert "X-Hermes-Session-Id" in response.headers["Access-Control-Expose-Headers"]
            await response.read()


async def test_a_foreign_page_is_refused(serve: Serve) -> None:
    server = await serve(cors_origins=[PAGE])
    async with server.post(HI, headers={"Origin": "http://evil.example"}) as response:
        assert response.status == 403
        assert "Access-Control-Allow-Origin" not in response.headers
    assert server.provider.requests == []


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/v1/chat/completions"])
async def test_a_wrong_prefix_is_told_the_right_path(serve: Serve, path: str) -> None:
    server = await serve()
    async with server.post(HI, path=path) as response:
        body = await response.json()
        assert response.status == 404
    assert "/v1/chat/completions" in body["error"]["message"]


async def test_a_wrong_method_is_told_the_right_one(serve: Serve) -> None:
    server = await serve()
    async with server.get("/v1/chat/completions") as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")
        assert (await response.json())["error"]["code"] == "method_not_allowed"


async def test_one_model_can_be_read_and_an_unknown_one_is_named(serve: Serve) -> None:
    server = await serve()
    async with server.get("/v1/models/hermes-agent") as response:
        assert (await response.json())["object"] == "model"
    async with server.get("/v1/models/nothing") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (
            404,
            "model_not_found",
        )


async def test_without_a_key_only_this_machine_is_answered() -> None:
    made = await asyncio.to_thread(APIServerAdapter, PlatformConfig(enabled=True))
    async with TestClient(TestServer(made.application())) as client:
        for host, status in (("localhost", 200), ("127.0.0.1:1", 200), ("evil.example:8642", 403)):
            async with client.get("/v1/models", headers={"Host": host}) as response:
                assert response.status == status


async def test_a_defect_is_a_json_500_that_tells_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve()

    def fail(*_: Any) -> None:
        raise RuntimeError("/secret/path of the server")

    monkeypatch.setattr(server.adapter, "_resolve_route", fail)
    async with server.post(HI) as response:
        body = await response.json()
        assert (response.status, body["error"]["code"]) == (500, "internal_error")
    assert "/secret" not in str(body)


@pytest.mark.slow
async def test_three_hundred_turns_leave_files_and_memory_where_they_were(serve: Serve) -> None:
    server = await serve()
    server.provider.default = lambda _r: chat("ok")

    def held() -> tuple[int, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return len(list(Path("/proc/self/fd").iterdir())), pages * 4096

    async def turns(first: int, count: int) -> None:
        for number in range(first, first + count):
            headers = {"X-Hermes-Session-Id": f"session-{number % 20}"}
            async with server.post(HI, headers=headers) as response:
                assert response.status == 200

    await turns(0, 100)
    files, memory = held()
    await turns(100, 300)
    files_after, memory_after = held()
    assert files_after <= files + 5
    assert memory_after <= memory * 1.2
    assert server.adapter._slots == set()
