"""Faults drawn at random for ten thousand short turns: each ends once, nothing leaks or runs twice.

A failure prints the seed that repeats it.
"""

import asyncio
import gc
import json
import logging
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.budget import Budget
from hermes.agent.cancel import TurnControl
from hermes.events import TurnEvent, TurnResult
from hermes.messages import JsonObject, Message
from hermes.providers.limits import Limits
from hermes.providers.retry import RetryPolicy
from support.agents import CountingTool, agent_at, calling, runtime_for
from support.scripted_http import (
    DONE,
    LAST,
    Answer,
    Fault,
    Request,
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

TURNS = 10_000
TOGETHER = 40


def cut_anywhere(dice: random.Random, fault: Fault) -> Answer:
    raw = b"".join(chat_events(("Some words ", "and more.")))
    upto = raw[: dice.randrange(len(raw))]
    return [head(), *([chunk(upto)] if upto else []), fault]


def in_pieces(dice: random.Random) -> Answer:
    raw = b"".join(chat_events(("Héllo ", "wörld")))
    cuts = sorted(dice.sample(range(1, len(raw)), 5))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    return stream(*pieces)


def tool_call(dice: random.Random) -> Answer:
    wanted = [
        (f"c{dice.randrange(10**9)}", "act", json.dumps({"n": dice.randrange(10**9)}))
        for _ in range(dice.randint(1, 3))
    ]
    return calling(*wanted)


def broken_call(dice: random.Random) -> Answer:
    return calling(("c", "act", '{"n": 1, "x'), finish=dice.choice(["length", "stop"]))


ANSWERS: list[tuple[int, Callable[[random.Random], Answer]]] = [
    (30, in_pieces),
    (10, lambda _d: chat("ok")),
    (20, tool_call),
    (5, broken_call),
    (6, lambda d: cut_anywhere(d, Fault.RESET)),
    (6, lambda d: cut_anywhere(d, Fault.CLOSE)),
    (4, lambda d: error(d.choice([400, 401, 408, 429, 500, 503, 529]), "no")),
    (2, lambda _d: [Fault.RESET]),
    (1, lambda _d: [head(), chunk(delta(content="a")), Fault.HANG]),
    (1, lambda _d: [Fault.HANG]),
    (3, lambda _d: chat()),
    (3, lambda _d: chat("cut off", finish="length")),
    (2, lambda _d: stream(b"data: {broken\n\n")),
    (2, lambda _d: stream(delta(content="x"), data({"error": {"message": "late"}}))),
    (2, lambda _d: [head(), chunk(delta(content="no end")), LAST]),
    (3, lambda _d: stream(delta(reasoning_content="hm"), delta(content="<think>a</think>b"), DONE)),
]


class Acts:
    """A tool that remembers every run by its argument, and sometimes fails."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.runs: Counter[int] = Counter()

    async def __call__(self, arguments: JsonObject) -> str:
        self.runs[arguments["n"]] += 1
        if self._dice.random() < 0.3:
            await asyncio.sleep(0)
        if self._dice.random() < 0.1:
            raise RuntimeError("a defect of the tool")
        return "acted"


class Watch:
    """A sink that keeps only what the rules are about."""

    def __init__(self) -> None:
        self.first = ""
        self.ends = 0
        self.after_end = 0
        self.text: list[str] = []
        self.open: set[str] = set()
        self.result: TurnResult | None = None

    def emit(self, event: TurnEvent) -> None:
        self.first = self.first or event.kind
        self.after_end += self.ends
        if event.kind == "text_delta":
            self.text.append(event.text)
        elif event.kind == "tool_started":
            self.open.add(event.call.id)
        elif event.kind == "tool_finished":
            self.open.remove(event.call.id)
        elif event.kind in ("turn_finished", "turn_failed"):
            self.ends += 1
            self.result = event.result


def check(watch: Watch) -> None:
    result = watch.result
    assert result is not None
    assert (watch.first, watch.ends, watch.after_end) == ("turn_started", 1, 0)
    assert watch.open == set()
    assert "".join(watch.text) == result.text
    assert (result.error is None) == (result.status == "completed" or result.status == "truncated")
    assert "think" not in result.text
    check_pairs(result.messages)


def check_pairs(messages: tuple[Message, ...]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert [r.call_id for r in message.tool_results] == [waiting.pop(0)]
        else:
            assert waiting == []
            waiting = [call.id for call in message.tool_calls]
    assert waiting == []


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.asyncio
async def test_ten_thousand_turns_under_random_faults(
    scripted_http: ScriptedHttp, tmp_path: Path, blockbuster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    blockbuster.deactivate()  # it inspects the stack at each call, and this test is about numbers
    caplog.set_level(logging.CRITICAL)
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    dice = random.Random(seed)
    acts = Acts(dice)
    weights, makers = zip(*ANSWERS, strict=True)

    def answer(request: Request) -> Answer:
        answered = request.body["messages"][-1]["role"] == "tool"
        if answered and dice.random() < 0.7:
            return chat("done")
        return dice.choices(makers, weights)[0](dice)

    scripted_http.default = answer
    statuses: Counter[str] = Counter()
    async with runtime_for(
        tmp_path,
        extra_tools=(CountingTool("act", act=acts),),
        refine=made_impatient,
    ) as runtime:
        runtime.policy = RetryPolicy(attempts=3, base=0.0)
        gate = asyncio.Semaphore(TOGETHER)

        async def turn(number: int) -> None:
            watch, control = Watch(), TurnControl()
            agent = agent_at(
                scripted_http, runtime, event_sink=watch, control=control,
                live=dice.random() < 0.8, budget=Budget(steps=6),
                stored=True, session_id=f"s{number % 500}",
            )  # fmt: skip
            async with gate:
                running = asyncio.ensure_future(agent.run(f"turn {number}"))
                if dice.random() < 0.1:
                    for _ in range(dice.randrange(60)):
                        await asyncio.sleep(0)
                    dice.choice([control.cancel, running.cancel])()
                elif dice.random() < 0.1:
                    control.steer("and more")
                await asyncio.wait({running}, timeout=30)
                assert running.done()
            if not watch.first:  # cancelled from outside before the turn had begun
                assert running.cancelled()
                statuses["never began"] += 1
                return
            check(watch)
            assert watch.result is not None
            statuses[watch.result.status] += 1

        await asyncio.gather(*(turn(n) for n in range(TOGETHER)))
        await settle(scripted_http)
        tasks, files = len(asyncio.all_tasks()), open_files()
        for start in range(TOGETHER, TURNS, 1000):
            await asyncio.gather(*(turn(n) for n in range(start, min(start + 1000, TURNS))))
        await settle(scripted_http)
        assert len(asyncio.all_tasks()) <= tasks
        assert open_files() <= files + 2 * TOGETHER
        heads, _more = await runtime.store.list(limit=1000)
        for session in heads:
            check_pairs(await runtime.store.history(session.id))
        assert len(runtime.locks) == 0
    assert sum(statuses.values()) == TURNS
    assert max(acts.runs.values()) == 1
    assert (
        min(statuses[status] for status in ("completed", "truncated", "failed", "cancelled")) > 50
    )
    await wait_until(lambda: not scripted_http.open)


def made_impatient(made: Any) -> Any:
    from dataclasses import replace

    return replace(made, limits=Limits(first_content=0.5, stall=0.5))


async def settle(server: ScriptedHttp) -> None:
    """Let what was cut off come to rest."""
    await wait_until(lambda: all(c._request is None for c in server.open))
    gc.collect()
