"""The SQL store under load, cancellation, faults and a killed process."""

import asyncio
import contextlib
import gc
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

import hermes
from hermes.errors import SessionError
from hermes.messages import Usage, text_message
from hermes.sessions import Session, records
from hermes.sessions.sql import SqlSessionStore

SOURCE = str(Path(hermes.__file__).parents[1])


def turn(name: str, size: int = 4) -> list:
    return [text_message("user", f"{name} {part}") for part in range(size)]


def handles() -> int:
    return psutil.Process().num_fds()


def session_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("hermes-session")]


class Gate:
    """Holds the store's writers at a job until it is opened."""

    def __init__(self, store: SqlSessionStore, writers: int) -> None:
        self.entered = threading.Semaphore(0)
        self._go_on = threading.Event()
        self.jobs = [store._workers.write(self._wait) for _ in range(writers)]

    def _wait(self, _connection: object) -> None:
        self.entered.release()
        assert self._go_on.wait(10)

    async def reached(self) -> None:
        for _ in self.jobs:
            assert await asyncio.to_thread(self.entered.acquire, timeout=20)

    def open(self) -> None:
        self._go_on.set()


def writers_of(store: SqlSessionStore) -> int:
    return store._workers._writers._max_workers


@pytest.mark.asyncio
async def test_a_turn_cancelled_while_it_waits_leaves_no_trace(sql_store):
    await sql_store.create(Session(id="s", source="cli"))
    gate = Gate(sql_store, writers_of(sql_store))
    await gate.reached()

    waiting = asyncio.ensure_future(sql_store.append_turn("s", turn("lost"), usage=Usage(input=1)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.open()

    assert await sql_store.append_turn("s", turn("kept"), usage=Usage(input=1)) == 4
    head = await sql_store.get("s")
    assert head is not None
    assert (head.message_count, head.usage.input) == (4, 1)
    assert [m.text[:4] for m in await sql_store.history("s")] == ["kept"] * 4


@pytest.mark.asyncio
async def test_a_turn_cancelled_once_it_has_begun_is_written_whole(sql_store, monkeypatch):
    await sql_store.create(Session(id="s", source="cli"))
    begun, go_on = threading.Event(), threading.Event()
    append = records.append_turn

    def slow(*arguments: object, **named: object) -> int:
        begun.set()
        assert go_on.wait(10)
        return append(*arguments, **named)

    monkeypatch.setattr(records, "append_turn", slow)
    running = asyncio.ensure_future(sql_store.append_turn("s", turn("whole"), usage=Usage()))
    assert await asyncio.to_thread(begun.wait, 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    go_on.set()

    monkeypatch.setattr(records, "append_turn", append)
    await sql_store.append_turn("s", turn("next"), usage=Usage())
    texts = [m.text.split()[0] for m in await sql_store.history("s")]
    assert sorted(texts) == ["next"] * 4 + ["whole"] * 4


@pytest.mark.asyncio
async def test_turns_cancelled_at_random_are_each_whole_or_absent(sql_store):
    await sql_store.create(Session(id="s", source="cli"))
    tasks = [
        asyncio.ensure_future(sql_store.append_turn("s", turn(f"t{n}"), usage=Usage(input=1)))
        for n in range(60)
    ]
    for number, task in enumerate(tasks):
        if number % 3 == 0:
            task.cancel()
        await asyncio.sleep(0)
    async with asyncio.timeout(20):
        results = await asyncio.gather(*tasks, return_exceptions=True)

    rows, total = await sql_store.page("s", limit=1000)
    assert [row.position for row in rows] == list(range(total))
    found = [row.message.text.split() for row in rows]
    whole = [found[start][0] for start in range(0, total, 4)]
    assert found == [[name, str(part)] for name in whole for part in range(4)]
    assert len(set(whole)) == len(whole)
    answered = {f"t{n}" for n, result in enumerate(results) if isinstance(result, int)}
    assert answered <= set(whole)
    assert len(answered) >= 40
    head = await sql_store.get("s")
    assert head is not None
    assert (head.message_count, head.usage.input) == (total, total // 4)


@pytest.mark.asyncio
async def test_a_cancelled_opening_leaves_no_connection_or_thread(tmp_path):
    store = await SqlSessionStore.open(tmp_path / "hermes.db")
    await store.aclose()
    gc.collect()
    before = handles()

    for _ in range(20):
        opening = asyncio.ensure_future(SqlSessionStore.open(tmp_path / "hermes.db"))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    # The default executor is one queue: when this has run, the openings have ended.
    await asyncio.get_running_loop().shutdown_default_executor()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert session_threads() == []
    assert handles() <= before


@pytest.mark.asyncio
async def test_closing_finishes_the_writes_that_wait(database):
    store = await SqlSessionStore.open(database)
    await store.create(Session(id="s", source="cli"))
    tasks = [
        asyncio.ensure_future(store.append_turn("s", turn(f"t{n}"), usage=Usage()))
        for n in range(30)
    ]
    await asyncio.sleep(0)

    await store.aclose()

    assert sorted(await asyncio.gather(*tasks)) == list(range(4, 121, 4))
    assert session_threads() == []


@pytest.mark.asyncio
async def test_a_closed_store_says_so(database):
    store = await SqlSessionStore.open(database)
    await store.aclose()

    for operation in (store.get("s"), store.append_turn("s", (), usage=Usage())):
        with pytest.raises(SessionError) as refused:
            await operation
        assert refused.value.code == "session_store_unavailable"


@pytest.mark.asyncio
async def test_the_event_loop_is_free_while_the_database_works(sql_store):
    await sql_store.create(Session(id="s", source="cli"))
    gate = Gate(sql_store, writers_of(sql_store))
    await gate.reached()
    writing = asyncio.ensure_future(sql_store.append_turn("s", turn("a"), usage=Usage()))
    await asyncio.sleep(0)

    assert not writing.done()
    if writers_of(sql_store) == 1:
        assert (await sql_store.get("s")).message_count == 0  # readers do not wait for the writer

    gate.open()
    assert await writing == 4


@pytest.mark.asyncio
async def test_many_turns_keep_the_count_of_handles_and_threads_flat(sql_store):
    await sql_store.create(Session(id="s", source="cli"))

    async def turns(count: int) -> None:
        for number in range(count):
            await sql_store.history("s")
            await sql_store.append_turn("s", turn(f"t{number}", 2), usage=Usage())
            await asyncio.gather(*(sql_store.get("s") for _ in range(2)))

    await turns(20)
    handles_before, threads_before = handles(), len(session_threads())
    await turns(300)

    assert abs(handles() - handles_before) <= 5
    assert len(session_threads()) <= threads_before + 7
    assert len(session_threads()) <= 7


@pytest.mark.asyncio
async def test_two_hundred_sessions_made_and_removed_keep_the_count_of_handles_flat(sql_store):
    async def talk(number: int) -> None:
        session = await sql_store.create(Session(id=f"s{number}", source="api_server"))
        await sql_store.append_turn(session.id, turn("t"), usage=Usage())
        assert await sql_store.delete(session.id)

    for number in range(20):
        await talk(number)
    before = handles()
    for number in range(200):
        await talk(number)

    assert abs(handles() - before) <= 5
    assert await sql_store.list() == ((), False)


@pytest.mark.asyncio
async def test_stores_opened_and_closed_release_everything(database):
    for _ in range(3):
        await (await SqlSessionStore.open(database)).aclose()
    gc.collect()
    before = handles()

    for _ in range(20):
        store = await SqlSessionStore.open(database)
        await store.create(Session(id="", source="cli"))
        await store.list()
        await store.aclose()

    gc.collect()
    assert handles() <= before + 1
    assert session_threads() == []


@pytest.mark.asyncio
async def test_the_search_index_holds_nothing_of_a_deleted_session(sqlite_store, tmp_path):
    await sqlite_store.create(Session(id="s", source="cli"))
    await sqlite_store.append_turn("s", turn("secret"), usage=Usage())
    await sqlite_store.fork("s", new_id="child")
    await sqlite_store.delete("s")
    await sqlite_store.delete("child")

    with closing(sqlite3.connect(tmp_path / "hermes.db")) as database:
        database.execute("INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')")
        rows = [
            database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("sessions", "messages", "turns", "messages_fts_docsize")
        ]
    assert rows == [0, 0, 0, 0]


@pytest.mark.asyncio
async def test_a_thousand_messages_are_paged_without_loading_them_all(sql_store):
    await sql_store.create(Session(id="s", source="cli"))
    for number in range(10):
        words = [text_message("user", f"{number}.{part} " + "word " * 200) for part in range(100)]
        await sql_store.append_turn("s", words, usage=Usage())
    await sql_store.page("s", limit=1)

    started = time.process_time()
    rows, total = await sql_store.page("s", limit=50, offset=950)
    spent = time.process_time() - started

    assert total == 1000
    assert [row.position for row in rows] == list(range(950, 1000))
    assert spent < 0.1
    assert len(await sql_store.history("s")) == 1000


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("hermes.sessions.database.BUSY_SECONDS", 0.05)


@pytest.mark.asyncio
async def test_a_database_locked_by_another_process_is_said_and_works_again(
    impatient, sqlite_store, tmp_path, caplog
):
    await sqlite_store.create(Session(id="s", source="cli"))
    with closing(sqlite3.connect(tmp_path / "hermes.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SessionError) as refused:
            await sqlite_store.append_turn("s", turn("a"), usage=Usage())
        assert (await sqlite_store.get("s")).message_count == 0
        other.execute("ROLLBACK")

    assert refused.value.code == "session_store_unavailable"
    assert "locked" in refused.value.message
    assert "locked" in caplog.text
    assert await sqlite_store.append_turn("s", turn("a"), usage=Usage()) == 4


@pytest.mark.asyncio
async def test_the_log_of_a_failed_write_does_not_hold_what_was_said(
    sqlite_store, tmp_path, caplog
):
    await sqlite_store.create(Session(id="s", source="cli"))
    with closing(sqlite3.connect(tmp_path / "hermes.db")) as other:
        other.execute("DROP TABLE turns")

    with pytest.raises(SessionError) as refused:
        await sqlite_store.append_turn("s", turn("my-password"), usage=Usage(), model="my-model")

    assert refused.value.code == "session_store_unavailable"
    assert "no such table: turns" in caplog.text
    assert "my-" not in caplog.text
    assert await sqlite_store.history("s") == ()


@pytest.mark.asyncio
async def test_a_group_whose_transaction_is_lost_fails_whole(sqlite_store, monkeypatch):
    await sqlite_store.create(Session(id="s", source="cli"))
    gate = Gate(sqlite_store, 1)
    await gate.reached()
    append = records.append_turn

    def torn(connection, session_id, added, **named):
        count = append(connection, session_id, added, **named)
        if added[0].text.startswith("t3"):
            # What SQLite does by itself when the disk is full.
            connection.connection.cursor().execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")
        return count

    monkeypatch.setattr(records, "append_turn", torn)
    tasks = [
        asyncio.ensure_future(sqlite_store.append_turn("s", turn(f"t{n}"), usage=Usage()))
        for n in range(6)
    ]
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    monkeypatch.setattr(records, "append_turn", append)

    codes = {getattr(result, "code", None) for result in results}
    assert codes == {"session_store_unavailable"}
    assert "full" in results[3].message
    assert await sqlite_store.history("s") == ()
    assert await sqlite_store.append_turn("s", turn("after"), usage=Usage()) == 4


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_postgresql_connection_that_was_cut_is_made_anew(cluster):
    import psycopg

    url = cluster.new_database()
    async with contextlib.aclosing(await SqlSessionStore.open(url)) as store:
        await store.create(Session(id="s", source="cli"))
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        assert await store.append_turn("s", turn("a"), usage=Usage()) == 4
        assert len(await store.history("s")) == 4
