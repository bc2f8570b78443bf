"""Servers on this computer: which answers count, and what is said about them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from aiohttp import web

from hermes.providers.local_detect import CANDIDATES, Candidate, Detection, detect, no_model_text

pytestmark = pytest.mark.asyncio

CHAT = {"object": "list", "data": [{"id": "llama3.2", "object": "model"}]}


@asynccontextmanager
async def answering(answer: object, status: int = 200) -> AsyncIterator[str]:
    async def models(_request: web.Request) -> web.Response:
        if isinstance(answer, str):
            return web.Response(text=answer, status=status, headers={"Location": "/"})
        return web.json_response(answer, status=status)

    async def elsewhere(_request: web.Request) -> web.Response:
        return web.json_response(CHAT)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_get("/", elsewhere)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@contextmanager
def silent():
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def candidates(*urls: str) -> list[Candidate]:
    return [
        Candidate(label=f"Server {number}", base_url=url, advice="give it one")
        for number, url in enumerate(urls, 1)
    ]


async def test_the_first_server_with_a_model_is_used_and_named() -> None:
    empty = {"object": "list", "data": []}

    async with answering(empty) as first, answering(CHAT) as second, answering(CHAT) as third:
        found = await detect(candidates(first, second, third))

    assert found.usable is not None
    assert found.usable.candidate.base_url == second
    assert found.usable.models == ("llama3.2",)
    assert found.summary() == "Using llama3.2 from Server 2 on this computer."


@pytest.mark.parametrize(
    "answer",
    [
        {"object": "list", "data": []},
        {"object": "list", "data": None},
        {"object": "list", "data": [{"id": "nomic-embed-text"}]},
    ],
    ids=["none", "null", "only embeddings"],
)
async def test_a_server_without_a_model_for_chat_is_running_but_of_no_use(answer: object) -> None:
    async with answering(answer) as url:
        found = await detect(candidates(url))

    assert found.usable is None
    assert found.summary() == "Server 1 is running but has no model: give it one."


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("<html>my other program</html>", 200),
        ('{"object": "list", "data": [', 200),
        ({"data": None}, 200),
        ({"data": "llama"}, 200),
        ({"data": [{"name": "x"}]}, 200),
        ({"data": ["x"]}, 200),
        ([CHAT], 200),
        (CHAT, 401),
        ("", 302),
        ('{"data": [{"id": "' + "x" * 1_100_000 + '"}]}', 200),
    ],
    ids=["page", "cut", "null", "text", "no id", "no object", "array", "401", "moved", "huge"],
)
async def test_another_program_on_the_port_is_no_hit(answer: object, status: int) -> None:
    async with answering(answer, status) as url:
        found = await detect(candidates(url))

    assert found.servers == ()


async def test_silent_and_absent_servers_cost_less_than_a_second_together() -> None:
    with silent() as one, silent() as two, socket.create_server(("127.0.0.1", 0)) as closed:
        absent = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        closed.close()
        async with asyncio.timeout(1.0):
            found = await detect(candidates(one, two, absent))

    assert found.servers == ()


async def test_the_usual_places_are_the_three_known_ones() -> None:
    assert [candidate.place for candidate in CANDIDATES] == [
        "127.0.0.1:11434",
        "127.0.0.1:1234",
        "127.0.0.1:8080",
    ]


async def test_without_any_model_the_text_names_three_ways_and_where_was_looked() -> None:
    text = no_model_text(Detection(looked_at=CANDIDATES, servers=()))

    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["1.", "2.", "3."]
    assert "hermes config set OPENAI_API_KEY" in text
    assert "hermes models pull" in text
    assert text.endswith("Looked at: 127.0.0.1:11434, :1234, :8080, none answered.")


async def test_looking_nowhere_is_said_too() -> None:
    found = await detect(())

    assert found.usable is None
    assert "local.detect_servers is off" in no_model_text(found)
