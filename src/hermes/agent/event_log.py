"""The log of one turn's events: written once, read by any number of readers at their own cursor.

It lives in memory; what is kept beyond the turn is for the surfaces to store.
"""

import asyncio
import threading
from collections.abc import Sequence

from hermes.events import TurnEvent, TurnFailed, TurnFinished

_TERMINAL = frozenset({TurnFinished, TurnFailed})


class EventLog:
    """An append-only list of events with a wake-up for readers.

    ``emit`` and ``close`` may be called from any thread; reading is for the loop's thread.
    """

    __slots__ = ("_closed", "_ended", "_events", "_loop", "_sleepers", "_thread", "_waiters")

    def __init__(self) -> None:
        self._events: list[TurnEvent] = []
        self._closed = False
        self._ended = False
        self._sleepers: list[asyncio.Future[None]] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def emit(self, event: TurnEvent) -> None:
        """Append one event."""
        self._events.append(event)
        if type(event) in _TERMINAL:
            self._ended = True
            self._notify()
        elif self._waiters:
            self._notify()

    def close(self) -> None:
        """Say that nothing follows; idempotent."""
        self._closed = self._ended = True
        self._notify()

    def _notify(self) -> None:
        if threading.get_ident() == self._thread:
            self._wake()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        if self._ended and self._sleepers:
            waiters += self._sleepers
            self._sleepers = []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    @property
    def closed(self) -> bool:
        """Whether the last event is in the log."""
        return self._closed

    def __len__(self) -> int:
        return len(self._events)

    def since(self, cursor: int) -> Sequence[TurnEvent]:
        """Return the events from number ``cursor`` (from 0) on."""
        return self._events[cursor:]

    def nudge(self) -> None:
        """Let every waiting reader look again, without a new event."""
        self._wake()

    async def changed(self, cursor: int) -> None:
        """Wait until there is an event at ``cursor``, the log has ended, or somebody nudges."""
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        # A thread may have appended before the waiter was there to be woken.
        if len(self._events) <= cursor and not self._closed:
            await waiter

    async def pause(self, seconds: float) -> None:
        """Wait so long, but not beyond the turn's end."""
        if self._ended:
            return
        sleeper = self._loop.create_future()
        self._sleepers.append(sleeper)
        timer = self._loop.call_later(seconds, self._rouse, sleeper)
        try:
            await sleeper
        finally:
            timer.cancel()

    def _rouse(self, sleeper: asyncio.Future[None]) -> None:
        if not sleeper.done():
            self._sleepers.remove(sleeper)
            sleeper.set_result(None)

    async def wait(self, cursor: int) -> bool:
        """Wait until there is an event at ``cursor``; return False when the log ended before it."""
        while len(self._events) <= cursor and not self._closed:
            await self.changed(cursor)
        return len(self._events) > cursor
