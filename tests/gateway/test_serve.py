"""``hermes serve`` as a process, and the server object in this one: how it starts and ends."""

import asyncio
import re
import signal
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from gateway.conftest import KEY
from hermes.errors import ConfigError
from hermes.gateway import server as server_module
from hermes.gateway.config import PlatformConfig
from hermes.gateway.platforms.api_server import APIServerAdapter
from hermes.gateway.server import GatewayServer
from hermes.hermes_cli import config
from support.process import Program, ran, started
from support.scripted_http import ScriptedHttp, chat, wait_until
from support.sse_text import events_of

pytestmark = pytest.mark.asyncio

STREAM = {"stream": True, "messages": [{"role": "user", "content": "hi"}]}


def write_settings(home: Path, provider: ScriptedHttp, **more: Any) -> None:
    settings = {
        "model": {"provider": "custom", "default": "m", "base_url": provider.base_url},
        "platforms": {"api_server": {"extra": {"port": 0}}},
        **more,
    }
    (home / "config.yaml").write_text(yaml.safe_dump(settings))


async def address_of(program: Program) -> str:
    async with asyncio.timeout(30):
        while line := (await program.out.readline()).decode():
            if found := re.search(r"http://[\d.:]+", line):
                return found.group()
    raise AssertionError("the server never said where it listens")


async def test_a_server_without_a_key_makes_one_keeps_it_private_and_answers(
    scripted_http: ScriptedHttp, home: Path
) -> None:
    write_settings(home, scripted_http)
    scripted_http.script(chat("Hello"))
    async with started("serve") as program:
        url = await address_of(program)
        env = home / ".env"
        assert env.stat().st_mode & 0o777 == 0o600
        key = env.read_text().split("API_SERVER_KEY=")[1].split()[0].strip("'\"")
        headers = {"Authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            async with http.get(f"{url}/health") as response:
                assert (await response.json())["status"] == "ok"
            async with http.post(f"{url}/v1/chat/completions", json=STREAM) as response:
                assert events_of(await response.read())[-1] == "[DONE]"
        program.send(signal.SIGTERM)
        async with asyncio.timeout(20):
            shown = await program.err.read() + await program.out.read()
            assert await program.wait() == 0
    assert key not in shown.decode()


async def test_a_signal_lets_the_running_turn_finish(
    scripted_http: ScriptedHttp, home: Path
) -> None:
    write_settings(home, scripted_http)
    gate = asyncio.Event()
    scripted_http.script([gate, *chat("whole")])
    async with started("serve", API_SERVER_KEY=KEY) as program:
        url = await address_of(program)
        headers = {"Authorization": f"Bearer {KEY}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            answer = asyncio.ensure_future(http.post(f"{url}/v1/chat/completions", json=STREAM))
            await scripted_http.request(1)
            program.send(signal.SIGTERM)
            async with asyncio.timeout(20):
                assert b"waiting up to" in await program.err.readline()
                gate.set()
                events = events_of(await (await answer).read())
                assert await program.wait() == 0
    assert events[-2]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("key", ["short", "changeme-changeme-changeme"])
async def test_a_weak_key_is_refused(scripted_http: ScriptedHttp, home: Path, key: str) -> None:
    write_settings(home, scripted_http)
    ended = await ran("serve", API_SERVER_KEY=key)
    assert ended.code == 2
    assert "API_SERVER_KEY" in ended.err
    assert key not in ended.err


async def test_a_database_that_cannot_be_opened_ends_the_start_with_its_name(
    scripted_http: ScriptedHttp, home: Path
) -> None:
    write_settings(home, scripted_http, sessions={"database_url": "oracle://nowhere/x"})
    ended = await ran("serve", API_SERVER_KEY=KEY)
    assert ended.code == 2
    assert "session database" in ended.err


async def start_on(port: int, scripted_http: ScriptedHttp, home: Path, said: list[str]) -> Any:
    write_settings(home, scripted_http)
    loaded = await asyncio.to_thread(config.load_settings)
    return GatewayServer(loaded.with_api_server(port=port, key=KEY), say=said.append)


async def test_a_port_that_is_given_back_in_time_is_taken(
    scripted_http: ScriptedHttp, home: Path
) -> None:
    holder = socket.create_server(("127.0.0.1", 0))
    port, said = holder.getsockname()[1], []
    server = await start_on(port, scripted_http, home, said)
    starting = asyncio.ensure_future(server.start())
    await wait_until(lambda: bool(said))
    holder.close()
    async with asyncio.timeout(40):
        listening = await starting
    assert listening.url == f"http://127.0.0.1:{port}"
    await server.aclose()


async def test_a_port_that_stays_taken_ends_the_start(
    scripted_http: ScriptedHttp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_BIND_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        server = await start_on(holder.getsockname()[1], scripted_http, home, [])
        with pytest.raises(ConfigError) as caught:
            await server.start()
        await server.aclose()
    assert caught.value.code == "port_unavailable"


async def test_refused_starts_leave_nothing_open(home: Path) -> None:
    def handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = handles()
    for _ in range(50):
        made = await asyncio.to_thread(APIServerAdapter, PlatformConfig(extra={"key": ""}))
        assert await made.connect() is False
        assert (made.fatal_error_code, made.fatal_error_retryable) == (
            "api_server_key_invalid",
            False,
        )
        await made.disconnect()
    assert handles() <= before + 1


async def test_a_second_signal_ends_the_wait_for_turns(
    scripted_http: ScriptedHttp, home: Path
) -> None:
    scripted_http.script([asyncio.Event()])
    said: list[str] = []
    server = await start_on(0, scripted_http, home, said)
    listening = await server.start()
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        answer = asyncio.ensure_future(
            http.post(f"{listening.url}/v1/chat/completions", json=STREAM)
        )
        await scripted_http.request(1)
        server.stop()
        closing = asyncio.ensure_future(server.aclose())
        await wait_until(lambda: bool(said))
        server.stop()
        await asyncio.wait_for(closing, 20)
        events = events_of(await (await answer).read())
    assert events[-2]["error"]["code"] == "cancelled"
