"""What has been said, top to bottom: finished rows, and the unfinished end of a text.

Where the rows stand on a screen is not known here.
"""

from typing import Literal, TypeAlias

from rich.style import Style
from rich.text import Text

from hermes.hermes_cli.terminal.blocks import BlockStream
from hermes.hermes_cli.terminal.markdown import Painter

Kind: TypeAlias = Literal["", "text", "earlier text", "tool", "note"]
"""What a row belongs to; a blank row stands between kinds. "" is the top, where none does."""


class Page:
    """Gathers rows in order; ``take`` gives each finished row once."""

    def __init__(self, paint: Painter) -> None:
        self._paint = paint
        self._blocks = BlockStream()
        self._words: list[str] = []
        self._rows: list[str] = []
        self.last: Kind = ""

    @property
    def has_new_words(self) -> bool:
        """Whether there are words that no frame has shown."""
        return bool(self._words)

    def write(self, words: str) -> None:
        """Add the next words of a text."""
        self._words.append(words)

    def read(self, width: int) -> None:
        """Turn new words into rows as far as they are final."""
        words, self._words = "".join(self._words), []
        for unit in self._blocks.feed(words) if words else ():
            self.add("text", self._paint.unit(unit, width))

    def end_text(self, width: int) -> None:
        """Make rows of all words: the text has ended, or something comes between."""
        self.read(width)
        for unit in self._blocks.finish():
            self.add("text", self._paint.unit(unit, width))
        self._blocks = BlockStream()
        if self.last == "text":
            self.last = "earlier text"

    def note(self, words: str, style: Style, width: int) -> None:
        """Add something that is not part of the text."""
        self.end_text(width)
        self.add("note", self._paint.lines(Text(words, style), width))

    def add(self, kind: Kind, rows: list[str]) -> None:
        """Add finished rows."""
        if self.last and self.last != kind:
            self._rows.append("")
        self._rows += rows
        self.last = kind

    def blank(self) -> None:
        """Add a blank row; what follows stands at a top of its own."""
        self._rows.append("")
        self.last = ""

    def rest(self, *, apart: bool) -> None:
        """Begin something new; with ``apart`` a blank row stands before it."""
        if apart and self.last:
            self.blank()
        self.last = ""

    def take(self) -> list[str]:
        """Return the rows that were finished since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def unfinished(self, width: int) -> list[str]:
        """Return the end of the text as it looks now."""
        rows = [row for unit in self._blocks.tail() for row in self._paint.unfinished(unit, width)]
        return ["", *rows] if rows and self.last not in ("", "text") else rows
