"""The first schema: sessions, messages with their full-text index, turns.

Frozen; what changes later is a revision of its own.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
_SEARCH = {
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


def upgrade() -> None:
    """Make the tables."""
    _create_sessions()
    _create_messages()
    _create_turns()
    connection = op.get_bind()
    for statement in _SEARCH[connection.dialect.name]:
        connection.exec_driver_sql(statement)


def downgrade() -> None:
    """Remove everything."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DROP TABLE messages_fts")
    for table in ("turns", "messages", "sessions"):
        op.drop_table(table)


def _words(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default="")


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def _owner(table: str) -> tuple[sa.Column[str], sa.ForeignKeyConstraint]:
    return (
        sa.Column("session_id", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=f"fk_{table}_session_id", ondelete="CASCADE"
        ),
    )


def _create_sessions() -> None:
    texts = ("title", "preview", "model", "system_prompt", "parent_id", "user_id")
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        *map(_words, texts),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("last_active", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        _words("end_reason"),
        _count("message_count"),
        _count("tool_call_count"),
        *map(_count, _TOKENS),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_last_active_id", "sessions", ["last_active", "id"])
    op.create_index(
        "ix_sessions_source_last_active_id", "sessions", ["source", "last_active", "id"]
    )


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", _ROW_ID, nullable=False),
        *_owner("messages"),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        _words("text"),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.UniqueConstraint("session_id", "position", name="uq_messages_session_id_position"),
    )


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column("id", _ROW_ID, nullable=False),
        *_owner("turns"),
        sa.Column("position", sa.Integer, nullable=False),
        _words("model"),
        *map(_count, _TOKENS),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_turns"),
    )
    op.create_index("ix_turns_session_id", "turns", ["session_id"])
    op.create_index("ix_turns_created_at", "turns", ["created_at"])
