"""Bringing a database to the present schema: made whole when empty, migrated when older.

alembic is imported only to migrate, as most starts have nothing to do.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from hermes.errors import SessionError
from hermes.sessions import database
from hermes.sessions.schema import HEAD, REVISIONS, VERSION_TABLE, metadata

MIGRATIONS = Path(__file__).parent / "migrations"

_ADVISORY_LOCK = 0x4865726D6573  # "Hermes"


def prepare(engine: Engine) -> None:
    """Make sure that the database has the present schema; safe when several processes start.

    Raises:
        SessionError: ``session_store_newer``, a later Hermes made it; ``session_store_foreign``,
            the tables are another program's; ``session_store_unavailable``.

    """
    with database.errors_mapped():
        with engine.connect() as connection:
            if _version(connection) == HEAD:
                return
        with database.writing(engine).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK}
                )
            _bring_up(connection)


def _bring_up(connection: Connection) -> None:
    version = _version(connection)
    if version == HEAD:
        return
    if version is None:
        metadata.create_all(connection, checkfirst=False)
        _stamp(connection)
    elif version in REVISIONS or not version:
        _migrate(connection)
    else:
        raise SessionError(
            f"The session database has schema {version}, made by a later Hermes; "
            f"this one knows {HEAD}. Update Hermes or choose another database.",
            code="session_store_newer",
        )


def _version(connection: Connection) -> str | None:
    """Return the schema's version, empty before the first, None when there is no schema."""
    names = set(inspect(connection).get_table_names())
    if VERSION_TABLE in names:
        found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - a constant
        return found.scalar_one_or_none() or ""
    if names & set(metadata.tables):
        raise database.foreign()
    return None


def _stamp(connection: Connection) -> None:
    connection.exec_driver_sql(
        f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, "
        f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(
        text(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (:head)"),  # noqa: S608 - a constant
        {"head": HEAD},
    )


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
