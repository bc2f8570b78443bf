"""A turn on a terminal that can move its cursor: markdown that grows, tools that count seconds.

What is finished is written once and never touched again; only the last rows change.
"""

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.style import Style

from hermes.events import (
    ReasoningDelta,
    Retrying,
    Steered,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnResult,
    TurnStarted,
)
from hermes.hermes_cli.terminal import wording
from hermes.hermes_cli.terminal.activity import BEAT, Activity
from hermes.hermes_cli.terminal.clean import clean, one_line
from hermes.hermes_cli.terminal.markdown import Painter
from hermes.hermes_cli.terminal.output import Output
from hermes.hermes_cli.terminal.page import Page
from hermes.hermes_cli.terminal.screen import HIDE_CURSOR, SHOW_CURSOR, Screen

_FRAME = 1 / 30
"""Seconds between two frames at least; drawing never takes more than a quarter of the time."""

_WAITING = "Waiting for the model"
_DIM = Style(dim=True)
_BAD = Style(color="red")
_WARN = Style(color="yellow")


class StyledView:
    """Draws turns on a terminal; ``interactive`` sets blank rows around what it shows.

    ``activity`` takes what the user types meanwhile.
    """

    def __init__(
        self,
        answer: Output,
        notices: Output,
        console: Console,
        *,
        interactive: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answer = answer
        self._notices = notices
        self._interactive = interactive
        self._clock = clock
        self._paint = Painter(console)
        self._page = Page(self._paint)
        self._screen = Screen()
        self._beside: list[str] = []
        self._remarks: list[str] = []
        self._cursor_hidden = False
        self._next_frame = 0.0
        self.activity = Activity(self._paint, hint=" · Ctrl-C stops" if interactive else "")

    @property
    def tick(self) -> float | None:
        """The next frame's time while words wait for it, the spinner's while something runs."""
        if self._page.has_new_words:
            return max(0.001, self._next_frame - self._clock())
        return BEAT if self.activity.moves else None

    def remark(self, line: str) -> None:
        """Keep a line to be shown where no text is being written."""
        self._remarks.append(clean(line))

    async def show(self, events: Sequence[TurnEvent]) -> None:
        """Take events in; draw unless the last frame is too fresh."""
        urgent = False
        for event in events:
            urgent = self._take(event) or urgent
        if urgent or self._clock() >= self._next_frame:
            await self.beat()

    async def beat(self) -> None:
        """Write a frame."""
        began = self._clock()
        width, height = self._answer.window()
        self._page.read(width)
        if self._page.last != "text":
            self._say_remarks()
        final = self._page.take()
        live = self._page.unfinished(width)
        for group in self.activity.rows(began, width):
            live += ["", *group] if live or self._page.last not in ("", "tool") else group
        frame = self._screen.frame(final, live, width=width, height=height)
        if bool(live) is not self._cursor_hidden:
            self._cursor_hidden = bool(live)
            frame += HIDE_CURSOR if live else SHOW_CURSOR
        await self._answer.write(frame)
        beside, self._beside = self._beside, []
        await self._notices.write("".join(line + "\n" for line in beside))
        ended = self._clock()
        self._next_frame = ended + max(_FRAME, 3 * (ended - began))

    async def notice(self, line: str) -> None:
        """Say one thing; where notices have another terminal or none, they go there as text."""
        self._note(line, _BAD if line.startswith("Error") else _DIM)
        self._page.rest(apart=self._interactive)
        await self.beat()

    async def markdown(self, text: str) -> None:
        """Draw a whole text."""
        self._page.write(text)
        self._page.end_text(self._width)
        self._page.rest(apart=self._interactive)
        await self.beat()

    async def close(self) -> None:
        """Leave the terminal as it was found, also in the middle of a turn."""
        self.activity.end()
        self._page.end_text(self._width)
        await self.beat()

    @property
    def _width(self) -> int:
        return self._answer.window()[0]

    def _take(self, event: TurnEvent) -> bool:
        """Note one event; return whether it must be seen at once."""
        if isinstance(event, TextDelta):
            self.activity.do("", 0.0)
            self._page.write(event.text)
            return False
        if isinstance(event, ReasoningDelta):
            self.activity.do("Thinking", self._clock())
            return False
        if isinstance(event, ToolStarted | ToolFinished):
            self._tool(event)
        else:
            self._between(event)
        return True

    def _tool(self, event: ToolStarted | ToolFinished) -> None:
        self._page.end_text(self._width)
        if isinstance(event, ToolStarted):
            self.activity.start(event, self._clock())
            return
        row = self.activity.finish(event)
        if self._notices.is_terminal:
            self._page.add("tool", [self._paint.cropped(row, self._width - 1)])
        else:
            self._beside.append(row.plain)

    def _between(
        self,
        event: TurnStarted
        | StepStarted
        | Retrying
        | Steered
        | wording.Aside
        | TurnFinished
        | TurnFailed,
    ) -> None:
        match event:
            case TurnStarted():
                if self._interactive:
                    self._page.blank()
                self.activity.do(_WAITING, self._clock())
            case StepStarted():
                self._page.end_text(self._width)
                self.activity.do(_WAITING, self._clock())
            case Retrying():
                self._note(f"↻ {wording.retrying(event)}", _DIM)
            case Steered():
                self.activity.waiting = []
                self._note(f"Taken into the turn: {one_line(event.text, 200)}", _DIM)
            case TurnFinished() | TurnFailed():
                self._end(event.result)
            case _:
                self._note(wording.aside(event), _DIM)

    def _end(self, result: TurnResult) -> None:
        self.activity.end()
        self._say_remarks()
        self._note(wording.ending(result), _BAD if result.status == "failed" else _WARN)
        self._page.rest(apart=self._interactive)

    def _note(self, words: str, style: Style) -> None:
        self._page.end_text(self._width)
        if words and self._notices.is_terminal:
            self._page.note(words, style, self._width)
        elif words:
            self._beside.append(words)

    def _say_remarks(self) -> None:
        remarks, self._remarks = self._remarks, []
        for remark in remarks:
            self._note(remark, _DIM)
