"""Conversations: what they are, where they are stored, who writes next.

The database code (``sql``) is not imported here: it loads SQLAlchemy; ``open_store`` does so off
the event loop.
"""

from hermes.sessions.memory import MemorySessionStore
from hermes.sessions.model import SearchHit, Session, StoredMessage
from hermes.sessions.opening import DATABASE_NAME, open_store
from hermes.sessions.repair import repaired
from hermes.sessions.store import SessionStore
from hermes.sessions.turns import SessionLocks

__all__ = [
    "DATABASE_NAME",
    "MemorySessionStore",
    "SearchHit",
    "Session",
    "SessionLocks",
    "SessionStore",
    "StoredMessage",
    "open_store",
    "repaired",
]
