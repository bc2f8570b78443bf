"""What a turn saves before it is stored whole, and what becomes of it."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.cancel import TurnControl
from hermes.errors import SessionError
from hermes.messages import Message, ToolCall, ToolResult, text_message
from hermes.sessions.memory import MemorySessionStore
from support.agents import CountingTool, agent_at, calling, run_turn, runtime_for
from support.scripted_http import Fault, ScriptedHttp, chat, head

pytestmark = pytest.mark.asyncio

LEFT = (
    text_message("user", "count"),
    Message(role="assistant", parts=(ToolCall(id="a", name="count", arguments="{}"),)),
    Message(role="tool", parts=(ToolResult(call_id="a", name="count", text="1"),)),
)


class Saves:
    """Every save of a store, held back until ``go`` is set; one that has begun is finished."""

    def __init__(self, store: Any, *, error: Exception | None = None) -> None:
        self.all: list[tuple[Message, ...]] = []
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()
        self._error = error
        self._save = store.save_unfinished
        store.save_unfinished = self

    async def __call__(self, session_id: str, messages: Sequence[Message]) -> None:
        self.all.append(tuple(messages))
        self.begun.set()
        self._running = asyncio.ensure_future(self._write(session_id, messages))
        await asyncio.shield(self._running)

    async def _write(self, session_id: str, messages: Sequence[Message]) -> None:
        await self.go.wait()
        if self._error:
            raise self._error
        await self._save(session_id, messages)

    async def done(self) -> None:
        """Wait for the last save."""
        await asyncio.wait_for(self._running, 20)


def counting(call_id: str) -> list[Any]:
    return calling((call_id, "count", "{}"))


async def test_each_tool_round_is_saved_with_all_before_it_and_gone_when_the_turn_is_stored(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(counting("a"), counting("b"), chat("Two."))
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        saves = Saves(runtime.store)
        await run_turn(agent_at(scripted_http, runtime, stored=True, session_id="s"), "count")
        stored = await runtime.store.history("s")
        assert await runtime.store.unfinished("s") == ()
    assert saves.all == [stored[:3], stored[:5]]
    assert [m.role for m in stored] == ["user", *["assistant", "tool"] * 2, "assistant"]


@pytest.mark.parametrize("tools", [True, False])
async def test_nothing_is_saved_without_tool_results_or_without_a_session(
    scripted_http: ScriptedHttp, tmp_path: Path, tools: bool
) -> None:
    scripted_http.script(*([counting("a")] if tools else []), chat("Done."))
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        saves = Saves(runtime.store)
        agent = agent_at(scripted_http, runtime, stored=not tools, session_id="s")
        assert (await run_turn(agent)).text == "Done."
    assert saves.all == []


async def test_what_was_left_is_history_once_with_the_next_turn_also_after_one_that_fails_to_store(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(counting("b"), chat("lost"), chat("Two."), chat("Three."))
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        store = runtime.store
        assert isinstance(store, MemorySessionStore)
        await store.save_unfinished("s", LEFT)

        async def refuse(*_: Any, **__: Any) -> int:
            raise SessionError("The disk is full.", code="session_store_unavailable")

        append, store.append_turn = store.append_turn, refuse  # type: ignore[method-assign]
        failed = await run_turn(agent_at(scripted_http, runtime, stored=True, session_id="s"), "b")
        store.append_turn = append  # type: ignore[method-assign]
        for text in ("c", "d"):
            await run_turn(agent_at(scripted_http, runtime, stored=True, session_id="s"), text)
        stored = await store.history("s")
        session = await store.get("s")
    assert failed.status == "failed"
    assert stored[:3] == LEFT
    assert [m.text for m in stored if m.role == "user"] == ["count", "b", "c", "d"]
    assert [r.call_id for m in stored for r in m.tool_results] == ["a", "b"]
    assert [m.text for m in stored[-4:]] == ["c", "Two.", "d", "Three."]
    assert session is not None
    assert (session.title, session.tool_call_count) == ("count", 2)


async def test_a_call_that_was_left_without_a_result_is_said_to_be_interrupted(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(chat("Shall I count again?"))
    async with runtime_for(tmp_path) as runtime:
        await runtime.store.save_unfinished("s", LEFT[:2])
        await run_turn(agent_at(scripted_http, runtime, stored=True, session_id="s"), "and?")
        stored = await runtime.store.history("s")
    assert [m.role for m in stored] == ["user", "assistant", "tool", "user", "assistant"]
    assert stored[2].tool_results[0].is_error


async def test_a_save_that_fails_is_logged_and_the_turn_goes_on(
    scripted_http: ScriptedHttp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scripted_http.script(counting("a"), chat("One."))
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        Saves(runtime.store, error=SessionError("The disk is full.", code="x"))
        agent = agent_at(scripted_http, runtime, stored=True, session_id="s")
        with caplog.at_level(logging.WARNING):
            result = await run_turn(agent)
        assert len(await runtime.store.history("s")) == 4
    assert (result.status, result.text) == ("completed", "One.")
    assert "The disk is full." in caplog.text


@pytest.mark.parametrize("moment", ["in the save", "in the call after it"])
async def test_a_cancelled_turn_is_stored_once_and_leaves_nothing_unfinished(
    scripted_http: ScriptedHttp, tmp_path: Path, moment: str
) -> None:
    scripted_http.script(counting("a"), [head(), Fault.HANG])
    control = TurnControl()
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        saves = Saves(runtime.store)
        if moment == "in the save":
            saves.go.clear()
        agent = agent_at(scripted_http, runtime, stored=True, session_id="s", control=control)
        running = asyncio.ensure_future(run_turn(agent, "count"))
        await asyncio.wait_for(saves.begun.wait(), 20)
        if moment == "in the call after it":
            await scripted_http.request(2)
        control.cancel()
        for _ in range(20):
            await asyncio.sleep(0)  # a turn that does not wait for its save is stored by now
        saves.go.set()
        assert (await running).status == "cancelled"
        await saves.done()
        stored = await runtime.store.history("s")
        assert await runtime.store.unfinished("s") == ()
    assert [m.role for m in stored] == ["user", "assistant", "tool"]
