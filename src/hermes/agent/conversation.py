"""Conversations that a turn can run in: one that the caller carries, one that a store keeps.

Compression and branching are not done here.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hermes.errors import SessionError
from hermes.events import TurnResult
from hermes.messages import Message
from hermes.sessions.model import Session
from hermes.sessions.repair import repaired
from hermes.sessions.store import SessionStore
from hermes.sessions.turns import SessionLocks

_TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class CarriedConversation:
    """The caller sends the history each time and nothing is stored."""

    history: tuple[Message, ...] = ()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[Message, ...]]:
        """Give the history as it was sent, with every tool call answered."""
        yield repaired(self.history)

    async def commit(self, user: Message, result: TurnResult) -> None:
        """Store nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """A session of a store: one turn at a time, each sees the result of the one before.

    A session that does not exist yet is made by its first turn, as ``source`` and ``model`` say.
    """

    store: SessionStore
    locks: SessionLocks
    session_id: str
    source: str
    model: str = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[Message, ...]]:
        """Wait for the session's running turn, then read what it left."""
        async with self.locks.hold(self.session_id):
            try:
                history = await self.store.history(self.session_id)
            except SessionError as error:
                if error.code != "session_not_found":
                    raise
                history = ()
            yield repaired(history)

    async def commit(self, user: Message, result: TurnResult) -> None:
        """Append the turn; make the session first where it is new."""
        if await self.store.get(self.session_id) is None:
            await self.store.create(
                Session(
                    id=self.session_id,
                    source=self.source,
                    title=_title(user),
                    model=result.model or self.model,
                )
            )
        await self.store.append_turn(
            self.session_id,
            (user, *result.messages),
            usage=result.usage,
            model=result.model,
        )


def _title(user: Message) -> str:
    line = " ".join(user.text.split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1].rstrip() + "…"
