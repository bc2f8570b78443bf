"""Several processes on one database, and one that is killed while it writes."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hermes
from hermes.sessions import Session
from hermes.sessions.sql import SqlSessionStore

SOURCE = str(Path(hermes.__file__).parents[1])

WRITER = """
import asyncio, sys
from hermes.messages import Usage, text_message
from hermes.sessions.sql import SqlSessionStore

async def main():
    store = await SqlSessionStore.open(sys.argv[1])
    name, limit = sys.argv[2], int(sys.argv[3])
    async def work(lane):
        for number in range(limit):
            said = [text_message("user", f"{name}{lane}-{number} {part}") for part in range(4)]
            await store.append_turn("s", said, usage=Usage(input=1))
            print(f"{name}{lane}-{number}", flush=True)
    await asyncio.gather(work("a"), work("b"), work("c"))
    await store.aclose()

asyncio.run(main())
"""


def start_writer(database: str, name: str, turns: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, database, name, str(turns)],
        env={"PYTHONPATH": SOURCE, "PATH": os.defpath},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def stored_turns(store: SqlSessionStore) -> list[str]:
    """The names of the stored turns; every one is whole and the head agrees."""
    rows, total = await store.page("s", limit=100_000)
    found = [row.message.text.split() for row in rows]
    names = [found[start][0] for start in range(0, total, 4)]
    assert found == [[name, str(part)] for name in names for part in range(4)]
    assert [row.position for row in rows] == list(range(total))
    head = await store.get("s")
    assert head is not None
    assert (head.message_count, head.usage.input) == (total, len(names))
    assert (await store.usage_by_model())[""].input == len(names)
    return names


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_killed_writer_leaves_whole_turns_and_all_it_was_told_of(database, sql_store):
    await sql_store.create(Session(id="s", source="cli"))
    told: list[str] = []
    for attempt, answers in enumerate((1, 40, 91)):
        process = start_writer(database, f"w{attempt}", 100_000)
        assert process.stdout
        told += [process.stdout.readline().strip() for _ in range(answers)]
        process.send_signal(signal.SIGKILL)
        rest, _error = process.communicate(timeout=20)
        told += rest[: rest.rfind("\n") + 1].split()

    names = await stored_turns(sql_store)

    assert len(told) >= 132
    assert set(told) <= set(names)
    assert len(set(names)) == len(names)
    assert len(await sql_store.search("w1a-0")) == 4


@pytest.mark.slow
@pytest.mark.asyncio
async def test_several_processes_write_one_session_without_loss_or_doubling(database, sql_store):
    await sql_store.create(Session(id="s", source="cli"))
    processes = [start_writer(database, f"p{number}", 20) for number in range(3)]

    errors = [await asyncio.to_thread(process.communicate, timeout=40) for process in processes]

    assert [error for _out, error in errors] == [""] * 3
    names = await stored_turns(sql_store)
    expected = {f"p{p}{lane}-{n}" for p in range(3) for lane in "abc" for n in range(20)}
    assert len(names) == 180
    assert set(names) == expected
