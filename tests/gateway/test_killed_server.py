"""What a server that is killed in the middle of a turn leaves to the next one."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.conftest import KEY
from hermes.messages import ToolResult
from hermes.sessions import DATABASE_NAME
from hermes.sessions.sql import SqlSessionStore
from support.agents import calling
from support.process import LIMIT, Program, started
from support.scripted_http import Fault, ScriptedHttp, chat, head

pytestmark = pytest.mark.asyncio

SESSION = "the-session"


@pytest.fixture(autouse=True)
def configured(home: Path, tmp_path: Path, scripted_http: ScriptedHttp) -> None:
    """A home folder whose model is the scripted one."""
    settings = {
        "model": {
            "provider": "custom",
            "default": "m",
            "base_url": scripted_http.base_url,
            "api_key": "upstream-key-of-the-test",
        },
        "platforms": {"api_server": {"extra": {"port": 0, "key": KEY}}},
        "terminal": {"cwd": str(tmp_path)},
    }
    (home / "config.yaml").write_text(json.dumps(settings))


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Program, str]]:
    """The real server in a process of its own, and its address."""
    async with asyncio.timeout(LIMIT), started("serve") as process:
        words = (await process.out.readline()).decode().split()
        yield process, next(word for word in words if word.startswith("http://"))


async def ask(url: str, text: str) -> str:
    """The answer to one message on the session."""
    headers = {"Authorization": f"Bearer {KEY}", "X-Hermes-Session-Id": SESSION}
    body = {"messages": [{"role": "user", "content": text}]}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/chat/completions", json=body, headers=headers) as response,
    ):
        answer: dict[str, Any] = await response.json()
        return str(answer["choices"][0]["message"]["content"])


async def killed_in_the_call_after_the_tool(
    provider: ScriptedHttp, url: str, process: Program, text: str, call_id: str
) -> list[str]:
    """Kill the server in the model call after a tool; return the history during that call."""
    asked = len(provider.requests)
    arguments = json.dumps({"command": f"echo {call_id} >> runs.txt; echo result of {call_id}"})
    provider.script(calling((call_id, "terminal", arguments)), [head(), Fault.HANG])
    asking = asyncio.ensure_future(ask(url, text))
    await provider.request(asked + 2)
    during = await history()
    process.send(signal.SIGKILL)
    await process.wait()
    with pytest.raises(aiohttp.ClientError):
        await asking
    return during


async def history() -> list[str]:
    """Role and words of the stored messages, as another process reads them."""
    path = Path(os.environ["HERMES_HOME"]) / DATABASE_NAME
    async with contextlib.aclosing(await SqlSessionStore.open(path)) as store:
        if await store.get(SESSION) is None:
            return []
        return [line(m.role, m.text, m.tool_results) for m in await store.history(SESSION)]


def line(role: str, text: str, results: tuple[ToolResult, ...]) -> str:
    return f"{role}: {text or ' '.join(result.text for result in results)}".strip()


def sent(provider: ScriptedHttp) -> list[tuple[str, str]]:
    """Role of each message of the last request, and its words or the id that it is about."""
    messages = provider.requests[-1].body["messages"]
    return [
        (m["role"], m["tool_calls"][0]["id"] if m.get("tool_calls") else about(m))
        for m in messages[1:]
    ]


def about(message: dict[str, Any]) -> str:
    return str(message.get("tool_call_id") or message["content"])


@pytest.mark.parametrize("known", [True, False], ids=["of a known session", "the very first"])
async def test_a_tool_that_ran_in_a_killed_turn_is_seen_by_the_next_and_not_run_again(
    scripted_http: ScriptedHttp, tmp_path: Path, known: bool
) -> None:
    earlier, seen = [], []
    async with served() as (process, url):
        if known:
            scripted_http.script(chat("Hello."))
            await ask(url, "hello")
            earlier = ["user: hello", "assistant: Hello."]
            seen = [("user", "hello"), ("assistant", "Hello.")]
        during = await killed_in_the_call_after_the_tool(
            scripted_http, url, process, "run it", "call_1"
        )
    assert during == await history() == earlier

    async with served() as (process, url):
        scripted_http.script(chat("It ran."))
        assert await ask(url, "and?") == "It ran."

    assert sent(scripted_http) == [
        *seen,
        ("user", "run it"),
        ("assistant", "call_1"),
        ("tool", "call_1"),
        ("user", "and?"),
    ]
    assert "result of call_1" in scripted_http.requests[-1].body["messages"][-2]["content"]
    assert (tmp_path / "runs.txt").read_text() == "call_1\n"
    after = await history()
    assert [text.split(":")[0] for text in after[len(earlier) :]] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]


async def test_turns_killed_one_after_the_other_lose_nothing_and_double_nothing(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    for number in ("1", "2"):
        async with served() as (process, url):
            during = await killed_in_the_call_after_the_tool(
                scripted_http, url, process, f"run {number}", f"call_{number}"
            )
        assert during == []

    async with served() as (process, url):
        for text in ("Both ran.", "Yes."):
            scripted_http.script(chat(text))
            assert await ask(url, "and?") == text

    assert sent(scripted_http) == [
        ("user", "run 1"),
        ("assistant", "call_1"),
        ("tool", "call_1"),
        ("user", "run 2"),
        ("assistant", "call_2"),
        ("tool", "call_2"),
        ("user", "and?"),
        ("assistant", "Both ran."),
        ("user", "and?"),
    ]
    assert (tmp_path / "runs.txt").read_text() == "call_1\ncall_2\n"
    assert len(await history()) == 10
