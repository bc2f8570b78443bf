"""What goes on right now, as rows below the text: waiting, running tools, what is being typed.

Nothing of it stays; a finished tool's row is given to whoever keeps rows.
"""

from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from hermes.events import ToolFinished, ToolStarted
from hermes.hermes_cli.terminal import wording
from hermes.hermes_cli.terminal.clean import one_line
from hermes.hermes_cli.terminal.markdown import Painter

BEAT = 0.12
"""Seconds between two pictures of the spinner."""

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DIM = Style(dim=True)
_GOOD = Style(color="green")
_BAD = Style(color="red")


@dataclass(frozen=True, slots=True)
class _Running:
    name: str
    subject: str
    since: float


class Activity:
    """What goes on; ``typed`` is the line being typed, ``waiting`` what the turn has not taken."""

    def __init__(self, paint: Painter, *, hint: str) -> None:
        self._paint = paint
        self._hint = hint
        self._doing = ""
        self._since = 0.0
        self._running: dict[str, _Running] = {}
        self.typed = ""
        self.waiting: list[str] = []

    @property
    def moves(self) -> bool:
        """Whether its rows change as time passes."""
        return bool(self._doing or self._running)

    def do(self, what: str, now: float) -> None:
        """Say what is waited for, and since when; "" for nothing."""
        if what != self._doing:
            self._doing, self._since = what, now

    def start(self, event: ToolStarted, now: float) -> None:
        """Show a tool that runs."""
        self._doing = ""
        subject = wording.subject(event.arguments)
        self._running[event.call.id] = _Running(one_line(event.call.name, 60), subject, now)

    def finish(self, event: ToolFinished) -> Text:
        """Show a tool no longer; return the row that tells of it for good."""
        self._doing = ""
        unknown = _Running(one_line(event.call.name, 60), "", 0.0)
        tool = self._running.pop(event.call.id, unknown)
        failed = event.result.is_error
        return Text.assemble(
            ("✗ " if failed else "● ", _BAD if failed else _GOOD),
            *_words(tool, event.seconds),
            (f"  {wording.failure(event)}" if failed else "", _BAD),
        )

    def end(self) -> None:
        """Show nothing any more."""
        self._doing = ""
        self._running.clear()
        self.typed = ""
        self.waiting = []

    def rows(self, now: float, width: int) -> list[list[str]]:
        """Return the groups of rows, tools first."""
        spin = _SPINNER[int(now / BEAT) % len(_SPINNER)]
        tools = [
            Text.assemble((f"{spin} ", _DIM), *_words(tool, now - tool.since))
            for tool in self._running.values()
        ]
        doing: list[Text] = []
        if self._doing:
            took = wording.seconds(now - self._since)
            doing = [Text(f"{spin} {self._doing}  {took}{self._hint}", _DIM)]
        groups = (tools, doing, self._typing(width))
        return [[self._paint.cropped(row, width - 1) for row in group] for group in groups if group]

    def _typing(self, width: int) -> list[Text]:
        rows = [
            Text.assemble(("> ", _DIM), one_line(line, 200), ("  (for the next tool step)", _DIM))
            for line in self.waiting
        ]
        if self.typed:
            line = self.typed.replace("\n", "⏎")
            while cell_len(line) > max(1, width - 4):
                line = line[max(1, (cell_len(line) - width + 4) // 2) :]
            rows.append(Text.assemble(("> ", _DIM), line))
        return rows


def _words(tool: _Running, took: float) -> tuple[tuple[str, Style], ...]:
    return (
        (tool.name, Style(bold=True)),
        (f" {tool.subject}" if tool.subject else "", Style()),
        (f"  {wording.seconds(took)}", _DIM),
    )
