"""Opening a database: what is made, what is refused, what is left alone."""

import asyncio
import contextlib
import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, make_url, text

import hermes
from hermes.errors import ConfigError, SessionError
from hermes.messages import Usage, text_message
from hermes.sessions import DATABASE_NAME, Session, open_store
from hermes.sessions import database as databases
from hermes.sessions.schema import HEAD, REVISIONS, VERSION_TABLE, metadata
from hermes.sessions.sql import SqlSessionStore, open_workers
from hermes.sessions.upgrade import MIGRATIONS

SOURCE = str(Path(hermes.__file__).parents[1])


def run_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONPATH": SOURCE, "PATH": os.defpath},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def fingerprint(folder: Path) -> dict[str, tuple[str, float, int]]:
    """Names, contents, times and modes of a folder's files."""
    return {
        path.name: (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            path.stat().st_mode,
        )
        for path in folder.iterdir()
        if path.is_file()
    }


def described(url: str) -> dict[str, object]:
    """Everything that a database's catalogue says of its schema."""
    engine = create_engine(databases._parse(url))
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            catalogue = "SELECT type, name, tbl_name FROM sqlite_master"
            code = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' OR name LIKE '%fts'"
        else:
            catalogue = "SELECT relkind::text, relname, '' FROM pg_class JOIN pg_namespace n \
                ON n.oid = relnamespace WHERE nspname = 'public'"
            code = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
        look = inspect(connection)
        found: dict[str, object] = {
            "catalogue": sorted(tuple(row) for row in connection.execute(text(catalogue))),
            "code": sorted(tuple(row) for row in connection.execute(text(code))),
        }
        for table in (*metadata.tables, VERSION_TABLE):
            found[table] = {
                "columns": [
                    {key: str(value) for key, value in column.items()}
                    for column in look.get_columns(table)
                ],
                "primary key": look.get_pk_constraint(table),
                "foreign keys": look.get_foreign_keys(table),
                "unique": look.get_unique_constraints(table),
                "indexes": sorted(look.get_indexes(table), key=lambda index: str(index["name"])),
            }
    engine.dispose()
    return found


def execute(url: str, *statements: str) -> None:
    engine = create_engine(databases._parse(url))
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def test_a_new_file_is_for_its_owner_alone_in_wal_mode_with_its_folders(tmp_path):
    path = tmp_path / "new" / "deep" / DATABASE_NAME

    workers = open_workers(path)

    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert files.keys() == {"hermes.db", "hermes.db-wal", "hermes.db-shm"}
    assert set(files.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    workers.close()
    assert [file.name for file in path.parent.iterdir()] == ["hermes.db"]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_old_file_that_others_may_read_is_closed_to_them(tmp_path):
    path = tmp_path / "hermes.db"
    open_workers(path).close()
    path.chmod(0o644)

    open_workers(path).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_connection_checks_references_and_waits_for_other_writers(tmp_path):
    engine = databases.create(tmp_path / "hermes.db", connections=2)
    with engine.connect() as one, engine.connect() as two:
        for connection in (one, two):
            pragmas = ("foreign_keys", "synchronous", "busy_timeout", "journal_mode")
            values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
            assert values == [1, 1, 10_000, "wal"]
    engine.dispose()


@pytest.mark.asyncio
async def test_what_was_stored_is_there_after_the_next_start(database):
    async with contextlib.aclosing(await open_store(database)) as first:
        await first.create(Session(id="s", source="cli"))
        await first.append_turn("s", [text_message("user", "hello")], usage=Usage())

    async with contextlib.aclosing(await open_store(database)) as second:
        assert [m.text for m in await second.history("s")] == ["hello"]


def test_a_made_schema_and_a_migrated_one_are_the_same(database, request, tmp_path):
    kind = make_url(str(databases._parse(database))).get_backend_name()
    if kind == "sqlite":
        migrated = str(tmp_path / "migrated.db")
    else:
        migrated = request.getfixturevalue("cluster").new_database()
    open_workers(database).close()
    execute(migrated, f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, "
            f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))")  # fmt: skip

    open_workers(migrated).close()

    made = described(database)
    assert made == described(migrated)
    assert made["sessions"]["columns"]


def test_the_known_versions_are_the_migrations(tmp_path):
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)

    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS
    assert scripts.get_current_head() == HEAD


def test_a_downgrade_leaves_nothing_and_the_next_start_makes_it_anew(database):
    from alembic import command
    from alembic.config import Config

    open_workers(database).close()
    engine = databases.create(database, connections=1)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == [VERSION_TABLE]
    engine.dispose()

    open_workers(database).close()

    assert described(database)["messages"]


@pytest.mark.asyncio
async def test_a_database_of_the_first_version_keeps_what_it_holds_and_takes_unfinished_turns(
    database,
):
    said = (text_message("user", "hello"),)
    async with contextlib.aclosing(await SqlSessionStore.open(database)) as store:
        await store.create(Session(id="s", source="cli"))
        await store.append_turn("s", said, usage=Usage())
    await asyncio.to_thread(
        execute,
        database,
        "DROP TABLE unfinished_turns",
        f"UPDATE {VERSION_TABLE} SET version_num = '0001'",
    )

    async with contextlib.aclosing(await SqlSessionStore.open(database)) as store:
        await store.save_unfinished("s", said)
        assert (await store.history("s"), await store.unfinished("s")) == (said, said)


def test_a_start_with_nothing_to_migrate_does_not_load_alembic(tmp_path):
    code = """
import sys
from hermes.sessions.sql import open_workers
open_workers(sys.argv[1]).close()
open_workers(sys.argv[1]).close()
print([name for name in ("alembic", "psycopg") if name in sys.modules])
"""
    process = run_python(code, str(tmp_path / "hermes.db"))
    out, error = process.communicate(timeout=30)

    assert (out, error) == ("[]\n", "")


def test_the_vocabulary_of_sessions_does_not_load_sqlalchemy():
    process = run_python(
        "import sys, hermes.sessions, hermes.hermes_state; print('sqlalchemy' in sys.modules)"
    )
    out, error = process.communicate(timeout=30)

    assert (out, error) == ("False\n", "")


def test_processes_that_start_at_once_do_not_clash(database):
    code = """
import sys, asyncio
from hermes.sessions import Session
from hermes.sessions.sql import SqlSessionStore
print("ready", flush=True)
sys.stdin.readline()
async def main():
    store = await SqlSessionStore.open(sys.argv[1])
    await store.create(Session(id=sys.argv[2], source="cli"))
    await store.aclose()
asyncio.run(main())
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, database, f"s{number}"],
            env={"PYTHONPATH": SOURCE, "PATH": os.defpath},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=30)[1] for process in processes]

    assert errors == [""] * 4

    async def listed() -> Sequence[Session]:
        async with contextlib.aclosing(await SqlSessionStore.open(database)) as store:
            return (await store.list())[0]

    assert {session.id for session in asyncio.run(listed())} == {"s0", "s1", "s2", "s3"}


def test_a_database_of_a_later_version_is_refused_and_kept(database):
    open_workers(database).close()
    execute(database, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")

    with pytest.raises(SessionError) as refused:
        open_workers(database)

    assert refused.value.code == "session_store_newer"
    assert "9999" in refused.value.message
    assert described(database)["messages"]


@pytest.mark.parametrize("running", [False, True])
def test_another_programs_file_is_refused_and_not_touched(tmp_path, running):
    path = tmp_path / "state.db"
    theirs = sqlite3.connect(path)
    theirs.execute("PRAGMA journal_mode = WAL")
    theirs.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL)")
    theirs.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
    theirs.commit()
    if not running:
        theirs.close()
    path.chmod(0o644)
    before = fingerprint(tmp_path)

    with pytest.raises(SessionError) as refused:
        open_workers(path)

    after = fingerprint(tmp_path)
    assert refused.value.code == "session_store_foreign"
    assert str(tmp_path) not in refused.value.message
    after.pop("state.db-shm", None), before.pop("state.db-shm", None)  # every reader's marks
    assert after == before
    theirs.close()


def test_another_programs_file_beside_ours_does_not_disturb(tmp_path):
    with closing(sqlite3.connect(tmp_path / "state.db")) as theirs:
        theirs.execute("CREATE TABLE sessions (id TEXT)")
    before = fingerprint(tmp_path)["state.db"]

    open_workers(tmp_path / DATABASE_NAME).close()

    assert fingerprint(tmp_path)["state.db"] == before


@pytest.mark.slow
def test_another_programs_tables_in_postgresql_are_refused_and_foreign_names_are_no_matter(cluster):
    taken, shared = cluster.new_database(), cluster.new_database()
    execute(taken, "CREATE TABLE sessions (id TEXT)")
    execute(shared, "CREATE TABLE orders (id TEXT)", "CREATE TABLE alembic_version (v TEXT)")

    with pytest.raises(SessionError) as refused:
        open_workers(taken)

    assert refused.value.code == "session_store_foreign"
    open_workers(shared).close()


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "hermes.db"
    path.write_text("not a database, but longer than a header of a hundred bytes " * 5)
    before = path.read_bytes()

    with pytest.raises(SessionError) as refused:
        open_workers(path)

    assert refused.value.code == "session_store_unavailable"
    assert "not a database" in refused.value.message
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_said_without_its_path(tmp_path):
    (tmp_path / "file").write_text("x")

    with pytest.raises(SessionError) as refused:
        open_workers(tmp_path / "file" / "hermes.db")

    assert refused.value.code == "session_store_unavailable"
    assert str(tmp_path) not in refused.value.message


@pytest.mark.parametrize(
    "url", ["mysql://h/d", "sqlite://", "sqlite:///:memory:", "postgresql+asyncpg://h/d", "a://b:c"]
)
def test_a_database_that_hermes_cannot_use_is_refused(url):
    with pytest.raises(ConfigError) as refused:
        open_workers(url)

    assert refused.value.code == "config_error"


def test_a_missing_postgresql_driver_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigError) as refused:
        open_workers("postgresql://localhost/hermes")

    assert 'pip install "hermes[postgres]"' in refused.value.message


def test_a_postgresql_that_cannot_be_reached_is_said_without_its_password(tmp_path):
    with pytest.raises(SessionError) as refused:
        open_workers(f"postgresql://me:secret-word@/hermes?host={tmp_path}")

    assert refused.value.code == "session_store_unavailable"
    assert "secret-word" not in refused.value.message
    assert str(tmp_path) not in refused.value.message


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ("postgres://u:p@h/d", "postgresql+psycopg"),
        ("postgresql://u:p@h/d", "postgresql+psycopg"),
        ("sqlite:////tmp/x.db", "sqlite"),
        ("~/x y.db", "sqlite"),
        ("C%3A?.db", "sqlite"),
    ],
)
def test_a_path_or_url_names_its_database(given, driver):
    url = databases._parse(given)

    assert url.drivername == driver
    if "://" not in given:
        assert url.database == str(Path(given).expanduser())


def test_a_path_with_odd_characters_is_taken_as_it_is(tmp_path):
    path = tmp_path / "empty" / "a b%20?#é.db"

    open_workers(path).close()
    open_workers(path).close()

    assert [file.name for file in path.parent.iterdir()] == [path.name]
