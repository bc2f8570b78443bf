"""The port to what shows a turn, and the loop that feeds it from the turn's event log.

How an event looks is for each view to say.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from hermes.agent.event_log import EventLog
from hermes.events import TurnEvent


class View(Protocol):
    """Shows one turn after another."""

    @property
    def tick(self) -> float | None:
        """Seconds until ``beat`` is wanted if no event comes before; None for never."""
        ...

    async def show(self, events: Sequence[TurnEvent]) -> None:
        """Show events in order.

        Raises:
            BrokenPipeError: nobody looks any more.
        """
        ...

    async def beat(self) -> None:
        """Show that time has passed."""
        ...

    def remark(self, line: str) -> None:
        """Take a line about something in the background, for the next beat."""
        ...

    async def close(self) -> None:
        """Leave the terminal in order, wherever the turn stands."""
        ...


class TalkView(View, Protocol):
    """Shows a whole conversation: also what stands between its turns."""

    async def notice(self, line: str) -> None:
        """Say something that is not part of an answer; "" says nothing."""
        ...

    async def markdown(self, text: str) -> None:
        """Show a whole text."""
        ...


class TypingView(Protocol):
    """Shows what the user types while a turn runs."""

    typed: str
    waiting: list[str]


async def follow(log: EventLog, view: View) -> None:
    """Show a log's events as they come, until it is closed and all are shown.

    A nudge of the log is a beat for the view.
    """
    cursor = 0
    while True:
        try:
            async with asyncio.timeout(view.tick):
                await log.changed(cursor)
        except TimeoutError:
            pass
        if events := log.since(cursor):
            cursor += len(events)
            await view.show(events)
        elif log.closed:
            return
        else:
            await view.beat()
