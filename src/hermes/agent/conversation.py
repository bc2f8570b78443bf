"""Conversations that a turn can run in: one that the caller carries, one that a store keeps.

Compression and branching are not done here.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

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

    @property
    def is_stored(self) -> bool:
        """Nothing is."""
        return False

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[Message, ...]]:
        """Give the history as it was sent, with every tool call answered."""
        yield repaired(self.history)

    async def keep(self, messages: Sequence[Message]) -> None:
        """Store nothing."""

    async def commit(self, user: Message, result: TurnResult) -> None:
        """Store nothing."""


@dataclass(slots=True, kw_only=True)
class StoredConversation:
    """A session of a store, for one turn: one at a time, each sees the result of the one before.

    A session that does not exist yet is made by its first turn, as ``source`` and ``model`` say.
    What a killed process left of a turn is seen by the next turn and stored together with it.
    """

    store: SessionStore
    locks: SessionLocks
    session_id: str
    source: str
    model: str = ""
    _left: tuple[Message, ...] = field(default=(), init=False)

    @property
    def is_stored(self) -> bool:
        """Every turn is."""
        return True

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[Message, ...]]:
        """Wait for the session's running turn, then read what it left, ended or not."""
        async with self.locks.hold(self.session_id):
            try:
                history = await self.store.history(self.session_id)
            except SessionError as error:
                if error.code != "session_not_found":
                    raise
                history = ()
            self._left = repaired(await self.store.unfinished(self.session_id))
            yield repaired(history) + self._left

    async def keep(self, messages: Sequence[Message]) -> None:
        """Save the turn so far, together with what was left before it."""
        await self.store.save_unfinished(self.session_id, (*self._left, *messages))

    async def commit(self, user: Message, result: TurnResult) -> None:
        """Append the turn after what was left before it; make the session first where it is new."""
        added = (*self._left, user, *result.messages)
        if await self.store.get(self.session_id) is None:
            await self.store.create(
                Session(
                    id=self.session_id,
                    source=self.source,
                    title=_title(added[0]),
                    model=result.model or self.model,
                )
            )
        await self.store.append_turn(
            self.session_id,
            added,
            usage=result.usage,
            model=result.model,
        )


def _title(user: Message) -> str:
    line = " ".join(user.text.split())
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1].rstrip() + "…"
