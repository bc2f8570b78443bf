"""Stores to test against: memory, SQLite, and a real PostgreSQL of the test run's own."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio

from hermes.sessions import MemorySessionStore, SessionStore
from hermes.sessions.sql import SqlSessionStore

_HOW_TO_INSTALL = (
    "The PostgreSQL server's programs are not in /usr/lib/postgresql/*/bin: install them "
    "(apt-get install postgresql) or set HERMES_TESTS_NO_POSTGRES=1 to skip these tests."
)


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL server on a unix socket of its own; makes empty databases."""

    socket: Path
    names: Iterator[int]

    def url(self, database: str) -> str:
        return f"postgresql://hermes@/{database}?host={quote(str(self.socket))}"

    def new_database(self) -> str:
        """Return the URL of a fresh database."""
        import psycopg

        name = f"hermes_{next(self.names)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if os.environ.get("HERMES_TESTS_NO_POSTGRES") == "1":
        pytest.skip("HERMES_TESTS_NO_POSTGRES=1 is set")
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries:
        pytest.fail(_HOW_TO_INSTALL)
    user = _unprivileged_user()
    base = Path(tempfile.mkdtemp(prefix="hermes-pg-"))
    try:
        if user:
            os.chown(base, pwd.getpwnam(user).pw_uid, -1)
        with _Server(binaries[-1], base, user):
            yield Cluster(socket=base, names=count(1))
    finally:
        shutil.rmtree(base, ignore_errors=True)


class _Server:
    """The server process for as long as the block runs."""

    def __init__(self, binaries: Path, base: Path, user: str | None) -> None:
        self._binaries, self._base = binaries, base
        self._as = {"user": user, "extra_groups": []} if user else {}

    def __enter__(self) -> None:
        data = self._base / "data"
        self._call("initdb", "-D", data, "-U", "hermes", "-A", "trust", "-E", "UTF8",
                   "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        self._log = (self._base / "log").open("wb")
        options = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60")
        self._process = subprocess.Popen(
            [self._binaries / "postgres", "-D", data, "-k", self._base, *options],
            stdout=self._log, stderr=self._log, cwd=self._base, **self._as,
        )  # fmt: skip
        self._wait_until_ready()

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        self._log.close()

    def _wait_until_ready(self) -> None:
        for _ in range(200):
            ready = subprocess.run(
                [self._binaries / "pg_isready", "-q", "-h", self._base, "-t", "1"], check=False
            )
            if ready.returncode == 0:
                return
            if self._process.poll() is not None:
                break
            try:
                self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        self.__exit__()
        pytest.fail("PostgreSQL did not start:\n" + (self._base / "log").read_text())

    def _call(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._binaries / program, *map(str, arguments)],
            cwd=self._base, capture_output=True, text=True, check=False, timeout=60, **self._as,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def _unprivileged_user() -> str | None:
    """The user to run the server as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path or URL of a fresh database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "hermes.db")
    return request.getfixturevalue("cluster").new_database()


@pytest_asyncio.fixture
async def sql_store(database: str) -> AsyncIterator[SqlSessionStore]:
    store = await SqlSessionStore.open(database)
    async with asyncio.timeout(30):
        yield store
    await store.aclose()


@pytest_asyncio.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[SqlSessionStore]:
    store = await SqlSessionStore.open(tmp_path / "hermes.db")
    yield store
    await store.aclose()


@pytest.fixture(scope="session")
def shared(cluster: Cluster) -> str:
    """The URL of one database for all tests that leave only rows behind."""
    return cluster.new_database()


@pytest.fixture
def emptied(shared: str) -> str:
    """The shared database without rows; making a fresh one costs more than most tests."""
    import psycopg

    with psycopg.connect(shared, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('sessions')").fetchone() != (None,):
            connection.execute("TRUNCATE sessions, messages, turns, unfinished_turns")
    return shared


@pytest_asyncio.fixture(params=["memory", "sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionStore]:
    """Every kind of store, empty."""
    opened: SessionStore
    if request.param == "memory":
        opened = MemorySessionStore()
    elif request.param == "sqlite":
        opened = await SqlSessionStore.open(tmp_path / "hermes.db")
    else:
        opened = await SqlSessionStore.open(request.getfixturevalue("emptied"))
    yield opened
    await opened.aclose()
