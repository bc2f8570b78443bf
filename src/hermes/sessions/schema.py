"""The tables of the session database, the same for SQLite and PostgreSQL.

How an older database becomes this one is for ``migrations`` to say, how rows are read and written
for ``records``.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)

REVISIONS = ("0001", "0002")
"""Every schema version that this program knows, oldest first; the last is the present one."""

HEAD = REVISIONS[-1]

VERSION_TABLE = "hermes_schema"
"""Where the version of the schema stands; its own name, as other programs have an
``alembic_version``.
"""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")


def _words(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="")


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    _words("title"),
    _words("preview"),
    _words("model"),
    _words("system_prompt"),
    _words("parent_id"),
    _words("user_id"),
    Column("started_at", Double, nullable=False),
    Column("last_active", Double, nullable=False),
    Column("ended_at", Double),
    _words("end_reason"),
    _count("message_count"),
    _count("tool_call_count"),
    _count("input_tokens"),
    _count("cached_input_tokens"),
    _count("output_tokens"),
    _count("reasoning_tokens"),
    Index(None, "last_active", "id"),
    Index(None, "source", "last_active", "id"),
)

messages = Table(
    "messages",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("session_id", Text, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("body", Text, nullable=False),
    _words("text"),
    Column("created_at", Double, nullable=False),
    UniqueConstraint("session_id", "position"),
)

turns = Table(
    "turns",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("session_id", Text, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    _words("model"),
    _count("input_tokens"),
    _count("cached_input_tokens"),
    _count("output_tokens"),
    _count("reasoning_tokens"),
    Column("created_at", Double, nullable=False),
    Index(None, "session_id"),
    Index(None, "created_at"),
)

# Without a reference to ``sessions``: a session's first turn makes the session when it ends.
unfinished_turns = Table(
    "unfinished_turns",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("messages", Text, nullable=False),
    Column("updated_at", Double, nullable=False),
)

SEARCH_DDL = {
    "sqlite": (
        """
        CREATE VIRTUAL TABLE messages_fts USING fts5(
            text, content='messages', content_rowid='id',
            tokenize='unicode61 remove_diacritics 2'
        )""",
        """
        CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages WHEN new.text <> '' BEGIN
            INSERT INTO messages_fts(rowid, text) VALUES (new.id, new.text);
        END""",
        """
        CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages WHEN old.text <> '' BEGIN
            INSERT INTO messages_fts(messages_fts, rowid, text)
            VALUES ('delete', old.id, old.text);
        END""",
    ),
    # ASCII punctuation becomes spaces: PostgreSQL's parser keeps URLs and paths as one word.
    # The percent sign is written as chr(37), as drivers read it as a placeholder.
    "postgresql": (
        r"""
        ALTER TABLE messages ADD COLUMN search tsvector GENERATED ALWAYS AS (
            to_tsvector('simple'::regconfig, translate(
                text, '!"#$&''()*+,-./:;<=>?@[\]^_`{|}~' || chr(37), repeat(' ', 32)
            ))
        ) STORED""",
        "CREATE INDEX ix_messages_search ON messages USING gin (search)",
    ),
}
"""What makes the stored words findable, by SQLAlchemy dialect."""


@event.listens_for(messages, "after_create")
def _create_search(_target: Table, connection: Connection, **_options: Any) -> None:
    for statement in SEARCH_DDL[connection.dialect.name]:
        connection.exec_driver_sql(statement)
