"""The database behind a path or URL: which one it is, its engine and its errors.

What the tables are and which version they have is for ``schema`` and ``upgrade`` to say.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from hermes.errors import ConfigError, SessionError
from hermes.sessions.schema import VERSION_TABLE

BUSY_SECONDS = 10.0
"""How long a writer waits for another process's writer."""

_WRITES = "hermes_writes"
_log = logging.getLogger(__name__)


def create(url_or_path: str | Path, *, connections: int) -> Engine:
    """Return an engine that holds at most ``connections``; a SQLite file is made if absent.

    Raises:
        ConfigError: not a database that Hermes can use, or its driver is missing.
        SessionError: ``session_store_foreign``, the file belongs to another program;
            ``session_store_unavailable``, it cannot be made or read.

    """
    url = _parse(url_or_path)
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, connections)
    return _postgresql(url, connections)


def writing(engine: Engine) -> Engine:
    """Return the engine whose transactions take the write lock at their start."""
    return engine.execution_options(**{_WRITES: True})


@contextmanager
def errors_mapped() -> Generator[None]:
    """Turn the database's errors into ``session_store_unavailable``; the log has the cause."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        _log.warning("session database: %s", error, exc_info=error)
        raise unavailable(str(getattr(error, "orig", error))) from error


def unavailable(cause: str = "") -> SessionError:
    """Return the error for a database that cannot be used; SQLite's causes name no path."""
    known = ("locked", "full", "readonly", "malformed", "not a database", "disk I/O")
    shown = f": {cause}" if any(word in cause for word in known) and "\n" not in cause else ""
    return SessionError(
        f"The session database cannot be used{shown}.", code="session_store_unavailable"
    )


def foreign() -> SessionError:
    """Return the error for a database that holds tables of another program."""
    return SessionError(
        "The session database belongs to another program; choose another file or database.",
        code="session_store_foreign",
    )


def _parse(url_or_path: str | Path) -> URL:
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return URL.create("sqlite", database=str(Path(url_or_path).expanduser()))
    try:
        url = make_url(url_or_path)
    except (ArgumentError, ValueError) as error:
        raise ConfigError("The session database's URL cannot be read.") from error
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database not in (None, "", ":memory:"):
        return url
    raise ConfigError(
        "The session database is a file path, sqlite:///FILE or postgresql://HOST/NAME."
    )


def _postgresql(url: URL, connections: int) -> Engine:
    try:
        return create_engine(
            url,
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args={"connect_timeout": 10},
        )
    except ImportError as error:
        raise ConfigError(
            'PostgreSQL needs the psycopg driver: pip install "hermes[postgres]"'
        ) from error


def _sqlite(url: URL, connections: int) -> Engine:
    path = Path(url.database or "")
    try:
        _claim(path)
    except (OSError, sqlite3.Error) as error:
        _log.warning("session database: %s", error, exc_info=error)
        raise unavailable(str(error) if isinstance(error, sqlite3.Error) else "") from error
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        hide_parameters=True,
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
    )
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _claim(path: Path) -> None:
    """Make the file for its owner alone, or make sure that an existing one is ours.

    The look is read-only: a file of another program stays as it is, to the byte. Where no log
    lies beside it, it is opened as immutable, as SQLite would leave an empty log there.
    """
    if path.exists() and path.stat().st_size:
        mode = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as database:
            names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if names and VERSION_TABLE not in names:
            raise foreign()
    else:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _configure(connection: sqlite3.Connection, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    # Two processes that switch a new file to WAL at once: SQLite refuses one without waiting.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
