"""A turn as plain text: the answer to one descriptor, everything about it to another.

No colour, no cursor movement, nothing is ever written over: for pipes, logs, plain terminals and
screen readers.
"""

import time
from collections.abc import Sequence

from hermes.events import (
    Retrying,
    Steered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
)
from hermes.hermes_cli.terminal import wording
from hermes.hermes_cli.terminal.clean import clean, one_line
from hermes.hermes_cli.terminal.output import Output

_LONG = 2.0
"""Seconds after which a running tool is announced to somebody who waits at a terminal."""


class PlainView:
    """Writes the answer as it comes and one line for each tool call."""

    def __init__(self, answer: Output, notices: Output) -> None:
        self._answer = answer
        self._notices = notices
        self._unannounced: dict[str, tuple[float, str]] = {}
        self._subjects: dict[str, str] = {}
        self._remarks: list[str] = []

    @property
    def tick(self) -> float | None:
        """Only while a tool runs that somebody at a terminal waits for."""
        return 0.5 if self._unannounced and self._notices.is_terminal else None

    def remark(self, line: str) -> None:
        """Keep a line to be written between two pieces of the answer."""
        self._remarks.append(clean(line))

    async def show(self, events: Sequence[TurnEvent]) -> None:
        """Write the events; adjacent text goes out in one piece."""
        await self._say_remarks()
        text: list[str] = []
        for event in events:
            if isinstance(event, TextDelta):
                text.append(event.text)
                continue
            await self._say(text)
            text = []
            await self._tell(event)
        await self._say(text)

    async def beat(self) -> None:
        """Announce the tools that take long, and say what was remarked."""
        await self._say_remarks()
        now = time.monotonic()
        for call_id, (started, label) in list(self._unannounced.items()):
            if now - started >= _LONG:
                del self._unannounced[call_id]
                await self.notice(f"… {label} is running")

    async def notice(self, line: str) -> None:
        """Write one line beside the answer."""
        if not line:
            return
        if self._notices.is_terminal and self._answer.is_terminal:
            await self._end_line()
        await self._notices.write(line + "\n")

    async def markdown(self, text: str) -> None:
        """Write a whole text as it is."""
        await self._say([text])
        await self._end_line()

    async def close(self) -> None:
        """End the line that is being written."""
        await self._end_line()
        await self._say_remarks()

    async def _say_remarks(self) -> None:
        remarks, self._remarks = self._remarks, []
        for remark in remarks:
            await self.notice(remark)

    async def _say(self, text: list[str]) -> None:
        words = "".join(text)
        await self._answer.write(clean(words) if self._answer.is_terminal else words)

    async def _tell(self, event: TurnEvent) -> None:
        if isinstance(event, ToolStarted):
            label = f"{one_line(event.call.name, 60)} {wording.subject(event.arguments)}".rstrip()
            self._subjects[event.call.id] = label
            self._unannounced[event.call.id] = (time.monotonic(), label)
        elif isinstance(event, ToolFinished):
            self._unannounced.pop(event.call.id, None)
            label = self._subjects.pop(event.call.id, one_line(event.call.name, 60))
            mark = "✗" if event.result.is_error else "●"
            took = wording.seconds(event.seconds)
            await self.notice(f"{mark} {label}  {took}  {wording.failure(event)}".rstrip())
        elif isinstance(event, Retrying):
            await self.notice(wording.retrying(event))
        elif isinstance(event, Steered):
            await self.notice(f"Taken into the turn: {one_line(event.text, 200)}")
        elif isinstance(event, wording.Aside):
            await self.notice(wording.aside(event))
        elif isinstance(event, TurnFinished | TurnFailed):
            self._unannounced.clear()
            await self._end_line()
            await self.notice(wording.ending(event.result))

    async def _end_line(self) -> None:
        if not self._answer.column_zero:
            await self._answer.write("\n")
