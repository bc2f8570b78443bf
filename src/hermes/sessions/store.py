"""The port to stored conversations.

A store knows nothing of turns that run; who may write next is the turn's concern
(``SessionLocks``), the store only makes each write whole.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from hermes.messages import Message, Usage
from hermes.sessions.model import SearchHit, Session, StoredMessage


class SessionStore(Protocol):
    """Conversations, each turn written whole or not at all.

    Raises ``SessionError`` with code ``session_not_found`` for an unknown id, ``session_exists``
    for a taken one, ``session_store_unavailable`` when the database cannot be used.
    """

    async def create(self, session: Session) -> Session:
        """Store a new head; an empty ``id`` is made, zero times are now."""
        ...

    async def get(self, session_id: str) -> Session | None:
        """Return the head, or None."""
        ...

    async def history(self, session_id: str) -> tuple[Message, ...]:
        """Return all messages in order."""
        ...

    async def page(
        self, session_id: str, *, limit: int, offset: int = 0, newest_first: bool = False
    ) -> tuple[Sequence[StoredMessage], int]:
        """Return at most ``limit`` messages from ``offset`` on, and how many there are in all."""
        ...

    async def append_turn(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        usage: Usage,
        model: str = "",
    ) -> int:
        """Add one turn's messages in one transaction; return the new message count.

        Usage and counts of the head grow with it; a given ``model`` becomes the session's. A
        session that goes on is no longer ended. What was saved of an unfinished turn goes. A
        caller cancelled while it waits finds the turn written whole or not at all.
        """
        ...

    async def save_unfinished(self, session_id: str, messages: Sequence[Message]) -> None:
        """Keep what the session's running turn has so far, in place of what was kept before.

        It is no part of the history and not searched; the next ``append_turn`` or ``delete``
        removes it. The session need not exist yet.
        """
        ...

    async def unfinished(self, session_id: str) -> tuple[Message, ...]:
        """Return what ``save_unfinished`` kept last, or nothing; also for an unknown session."""
        ...

    async def update(
        self, session_id: str, *, title: str | None = None, end_reason: str | None = None
    ) -> Session:
        """Change what is given; an ``end_reason`` also ends the session."""
        ...

    async def fork(self, session_id: str, *, new_id: str = "", title: str = "") -> Session:
        """Copy head and messages into a child session, whose own usage starts at nothing."""
        ...

    async def delete(self, session_id: str) -> bool:
        """Remove head, messages and what is unfinished; return whether there was a head."""
        ...

    async def list(
        self,
        *,
        limit: int = 50,
        offset: int = 0,
        source: str = "",
        include_children: bool = True,
    ) -> tuple[Sequence[Session], bool]:
        """Return heads by last activity, newest first, and whether more follow.

        Children are the sessions that have a parent.
        """
        ...

    async def search(self, words: str, *, limit: int = 20) -> Sequence[SearchHit]:
        """Find messages that hold all of ``words``, best first; any text is a valid query."""
        ...

    async def usage_by_model(self, *, since: float = 0.0) -> Mapping[str, Usage]:
        """Return what turns from ``since`` on (Unix seconds) cost, by model, deleted ones apart."""
        ...

    async def aclose(self) -> None:
        """Close connections and threads; idempotent."""
        ...
