"""A turn on a terminal that can move its cursor: markdown that grows, tools that count seconds.

What is finished is written once and never touched again; only the last rows change.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

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
from hermes.hermes_cli.terminal.blocks import BlockStream
from hermes.hermes_cli.terminal.clean import clean, one_line
from hermes.hermes_cli.terminal.markdown import Painter
from hermes.hermes_cli.terminal.output import Output
from hermes.hermes_cli.terminal.screen import HIDE_CURSOR, SHOW_CURSOR, Screen

_FRAME = 1 / 30
"""Seconds between two frames at least; drawing never takes more than a quarter of the time."""

_BEAT = 0.12
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DIM = Style(dim=True)
_GOOD = Style(color="green")
_BAD = Style(color="red")
_WARN = Style(color="yellow")


@dataclass(frozen=True, slots=True)
class _Running:
    name: str
    subject: str
    since: float


class StyledView:
    """Draws turns on a terminal.

    ``interactive`` sets a blank row around what it shows. ``typed`` is what the user types
    meanwhile, ``waiting`` what was typed and is not in the turn yet; both stand below.
    """

    def __init__(
        self,
        answer: Output,
        notices: Output,
        console: Console,
        *,
        interactive: bool = False,
        window: Callable[[], tuple[int, int]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answer = answer
        self._notices = notices
        self.interactive = interactive
        self._window = window or answer.window
        self._clock = clock
        self._paint = Painter(console)
        self._screen = Screen()
        self._blocks = BlockStream()
        self._final: list[str] = []
        self._beside: list[str] = []
        self._remarks: list[str] = []
        self._cursor_hidden = False
        self._text: list[str] = []
        self._running: dict[str, _Running] = {}
        self._last = ""
        self._doing: tuple[str, float] | None = None
        self._next_frame = 0.0
        self.typed = ""
        self.waiting: list[str] = []

    @property
    def tick(self) -> float | None:
        """The next frame's time while text waits for it, the spinner's while something runs."""
        if self._text:
            return max(0.001, self._next_frame - self._clock())
        return _BEAT if self._doing or self._running else None

    def remark(self, line: str) -> None:
        """Keep a line to be shown where no text is being written."""
        self._remarks.append(clean(line))

    async def show(self, events: Sequence[TurnEvent]) -> None:
        """Take events in; draw unless the last frame is too fresh."""
        urgent = False
        for event in events:
            urgent = self._take(event) or urgent
        if urgent or self._clock() >= self._next_frame:
            await self.draw()

    async def beat(self) -> None:
        """Draw what time has changed."""
        await self.draw()

    async def notice(self, line: str) -> None:
        """Say one thing; where notices have another terminal or none, they go there as text."""
        self._note(line, _BAD if line.startswith("Error") else _DIM)
        self._rest()
        await self.draw()

    async def markdown(self, text: str) -> None:
        """Draw a whole text."""
        self._text.append(text)
        self._end_text()
        self._rest()
        await self.draw()

    async def draw(self) -> None:
        """Write a frame."""
        began = self._clock()
        width, height = self._window()
        self._take_text()
        if self._last != "text":
            self._say_remarks()
        final, self._final = self._final, []
        beside, self._beside = self._beside, []
        live = [*self._unfinished(width), *self._below(width)]
        frame = self._screen.frame(final, live, width=width, height=height)
        if bool(live) is not self._cursor_hidden:
            self._cursor_hidden = bool(live)
            frame += HIDE_CURSOR if live else SHOW_CURSOR
        await self._answer.write(frame)
        await self._notices.write("".join(line + "\n" for line in beside))
        ended = self._clock()
        self._next_frame = ended + max(_FRAME, 3 * (ended - began))

    async def close(self) -> None:
        """Leave the terminal as it was found, also in the middle of a turn."""
        self._running.clear()
        self._doing = None
        self.typed = ""
        self.waiting = []
        self._end_text()
        await self.draw()

    def _say_remarks(self) -> None:
        remarks, self._remarks = self._remarks, []
        for remark in remarks:
            self._note(remark, _DIM)

    @property
    def _width(self) -> int:
        return self._window()[0]

    def _take(self, event: TurnEvent) -> bool:
        """Note one event; return whether it must be seen at once."""
        if isinstance(event, TextDelta):
            self._doing = None
            self._text.append(event.text)
            return False
        if isinstance(event, ReasoningDelta):
            self._do("Thinking")
            return False
        if isinstance(event, ToolStarted | ToolFinished):
            self._tool(event)
        else:
            self._between(event)
        return True

    def _between(
        self,
        event: TurnStarted | StepStarted | Retrying | Steered | TurnFinished | TurnFailed,
    ) -> None:
        match event:
            case TurnStarted():
                if self.interactive:
                    self._final.append("")
                self._do("Waiting for the model")
            case StepStarted():
                self._end_text()
                self._do("Waiting for the model")
            case Retrying():
                self._note(f"↻ {wording.retrying(event)}", _DIM)
            case Steered():
                self.waiting = []
                self._note(f"Taken into the turn: {one_line(event.text, 200)}", _DIM)
            case TurnFinished() | TurnFailed():
                self._end(event.result)

    def _do(self, what: str) -> None:
        """Say below what goes on, and since when."""
        if self._doing is None or self._doing[0] != what:
            self._doing = (what, self._clock())

    def _tool(self, event: ToolStarted | ToolFinished) -> None:
        self._end_text()
        self._doing = None
        if isinstance(event, ToolStarted):
            self._running[event.call.id] = _Running(
                one_line(event.call.name, 60), wording.subject(event.arguments), self._clock()
            )
            return
        running = self._running.pop(event.call.id, _Running(one_line(event.call.name, 60), "", 0.0))
        failed = event.result.is_error
        line = Text.assemble(
            ("✗ " if failed else "● ", _BAD if failed else _GOOD),
            *self._tool_words(running, event.seconds),
            (f"  {wording.failure(event)}" if failed else "", _BAD),
        )
        if self._notices.is_terminal:
            self._rows("tool", [self._paint.cropped(line, self._width - 1)])
        else:
            self._beside.append(line.plain)

    @staticmethod
    def _tool_words(tool: _Running, took: float) -> tuple[tuple[str, Style], ...]:
        return (
            (tool.name, Style(bold=True)),
            (f" {tool.subject}" if tool.subject else "", Style()),
            (f"  {wording.seconds(took)}", _DIM),
        )

    def _note(self, words: str, style: Style) -> None:
        self._end_text()
        if words and self._notices.is_terminal:
            self._rows("note", self._paint.lines(Text(words, style), self._width))
        elif words:
            self._beside.append(words)

    def _end(self, result: TurnResult) -> None:
        self._doing = None
        self._running.clear()
        self.waiting = []
        self._note(wording.ending(result), _BAD if result.status == "failed" else _WARN)
        self._rest()

    def _rows(self, kind: str, rows: list[str]) -> None:
        """Add finished rows; a blank one stands between things of different kinds."""
        if self._last and self._last != kind:
            self._final.append("")
        self._final += rows
        self._last = kind

    def _rest(self) -> None:
        """Set what follows apart from what was said."""
        if self.interactive and self._last != "":
            self._final.append("")
        self._last = ""

    def _take_text(self) -> None:
        text, self._text = "".join(self._text), []
        for unit in self._blocks.feed(text) if text else ():
            self._rows("text", self._paint.unit(unit, self._width))

    def _end_text(self) -> None:
        self._take_text()
        for unit in self._blocks.finish():
            self._rows("text", self._paint.unit(unit, self._width))
        self._blocks = BlockStream()
        if self._last == "text":
            self._last = "earlier text"

    def _unfinished(self, width: int) -> list[str]:
        rows: list[str] = []
        for unit in self._blocks.tail():
            rows += self._paint.unfinished(unit, width)
        gap = [""] if rows and self._last not in ("", "text") else []
        return gap + rows

    def _below(self, width: int) -> list[str]:
        now = self._clock()
        spin = _SPINNER[int(now / _BEAT) % len(_SPINNER)]
        rows: list[str] = []
        for tool in self._running.values():
            words = self._tool_words(tool, now - tool.since)
            rows.append(self._paint.cropped(Text.assemble((f"{spin} ", _DIM), *words), width - 1))
        if rows and self._last not in ("", "tool"):
            rows.insert(0, "")
        if self._doing is not None:
            what, since = self._doing
            hint = " · Ctrl-C stops" if self.interactive else ""
            words = f"{spin} {what}  {wording.seconds(now - since)}{hint}"
            rows += ["", words] if self._last else [words]
            rows[-1] = self._paint.cropped(Text(words, _DIM), width - 1)
        return [*rows, *self._typed(width)]

    def _typed(self, width: int) -> list[str]:
        rows = [
            self._paint.cropped(
                Text.assemble(("> ", _DIM), line, ("  (for the next tool step)", _DIM)), width - 1
            )
            for line in (one_line(waiting, 200) for waiting in self.waiting)
        ]
        if self.typed:
            line = self.typed.replace("\n", "⏎")
            while cell_len(line) > max(1, width - 4):
                line = line[max(1, (cell_len(line) - width + 4) // 2) :]
            rows.append(self._paint.cropped(Text.assemble(("> ", _DIM), line), width - 1))
        return ["", *rows] if rows else []
