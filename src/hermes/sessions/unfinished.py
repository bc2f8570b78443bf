"""Rows of turns that have not ended: what a turn did so far, until the whole turn is stored.

A row need not have a session yet. Transactions, threads and connections are the caller's; nothing
here commits.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, select, text

from hermes.messages import Message
from hermes.sessions import codec
from hermes.sessions.schema import unfinished_turns

_SAVE = text(
    "INSERT INTO unfinished_turns (session_id, messages, updated_at) "
    "VALUES (:session, :messages, :now) ON CONFLICT (session_id) "
    "DO UPDATE SET messages = excluded.messages, updated_at = excluded.updated_at"
)
_MESSAGES = select(unfinished_turns.c.messages).where(
    unfinished_turns.c.session_id == bindparam("session")
)
_CLEAR = delete(unfinished_turns).where(unfinished_turns.c.session_id == bindparam("session"))


def save(connection: Connection, session_id: str, said: Sequence[Message], now: float) -> None:
    """Write the session's row anew."""
    row = {"session": session_id, "messages": codec.encode_all(said), "now": now}
    connection.execute(_SAVE, row)


def read(connection: Connection, session_id: str) -> tuple[Message, ...]:
    """Return the messages of the session's row; none where there is no row."""
    stored = connection.execute(_MESSAGES, {"session": session_id}).scalar_one_or_none()
    return () if stored is None else codec.decode_all(stored)


def clear(connection: Connection, session_id: str) -> None:
    """Remove the session's row where there is one."""
    connection.execute(_CLEAR, {"session": session_id})
