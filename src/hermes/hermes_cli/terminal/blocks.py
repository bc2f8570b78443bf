"""Markdown that arrives in pieces, cut into units that later text cannot change.

A unit is a block, an item of a list, or a line of fenced code. The cut depends on whole lines
only, so the same text gives the same units wherever it was split. Drawing them is not done here.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from markdown_it import MarkdownIt

from hermes.hermes_cli.terminal.clean import clean

UnitKind: TypeAlias = Literal["markdown", "fence_open", "code", "fence_close"]

_CODE_CONTEXT = 1_500
"""Characters of code before a line that its highlighting may depend on; bounds its cost."""

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})(.*)$")
_FENCE_END = re.compile(r"^ {0,3}(`+|~+)[ \t]*$")
_FENCE_START = re.compile(r"^ {0,3}(```|~~~)")
_ONLY_MARKERS = re.compile(r"^[\s>]*([-*+#=|`~_: ]+|\d{1,9}[.)]?)?\s*$")
"""A line that says nothing yet: what it will be is decided by what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A piece of markdown that can be drawn by itself.

    ``text`` is markdown source, the language of a fence, or a line of code. ``gap`` says that a
    blank line stands before it. ``language`` and ``context`` (the code before) are for ``code``.
    """

    kind: UnitKind
    text: str
    gap: bool = False
    language: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    line: int
    gap: bool
    fence: bool = False


@dataclass(slots=True)
class _Fence:
    """An open fence: how it is closed, how far it is indented, the code so far."""

    marker: str
    indent: int
    language: str
    context: str = ""

    def closed_by(self, line: str) -> bool:
        found = _FENCE_END.match(line)
        return found is not None and found[1].startswith(self.marker)

    def unit(self, line: str) -> Unit:
        indent = len(line) - len(line.lstrip(" "))
        return Unit(
            kind="code",
            text=line[min(indent, self.indent) :],
            language=self.language,
            context=self.context,
        )

    def take(self, line: str) -> Unit:
        unit = self.unit(line)
        context = self.context + unit.text + "\n"
        if len(context) > _CODE_CONTEXT:
            context = context[-_CODE_CONTEXT:].partition("\n")[2]
        self.context = context
        return unit


def parser() -> MarkdownIt:
    """Return the parser of answers: CommonMark with tables and strike-through.

    HTML and link definitions are text like any other: neither may swallow words of the answer.
    """
    markdown = MarkdownIt("commonmark", {"html": False})
    return markdown.enable(["table", "strikethrough"]).disable("reference")


class BlockStream:
    """Cuts one answer's markdown into units as it arrives."""

    def __init__(self) -> None:
        self._parser = parser()
        self._parser.core.ruler.disable("inline")
        self._lines: list[str] = []
        self._partial = ""
        self._gap = False
        self._fence: _Fence | None = None

    def feed(self, text: str) -> list[Unit]:
        """Take more text; return the units that are final by now."""
        head, *rest = clean(text).split("\n")
        self._partial += head
        if not rest:
            return []
        self._lines += [self._partial, *rest[:-1]]
        self._partial = rest[-1]
        return self._advance(last=False)

    def tail(self) -> list[Unit]:
        """Return what follows the final units as it looks now; it may look otherwise later."""
        partial = self._partial
        if self._fence is not None:
            if not partial or _FENCE_END.match(partial):
                return []
            return [self._fence.unit(partial)]
        if _FENCE_START.match(partial) or _ONLY_MARKERS.match(partial):
            partial = ""
        lines = [*self._lines, partial]
        starts = self._starts(lines)
        return [self._unit(lines, starts, number) for number in range(len(starts))]

    def finish(self) -> list[Unit]:
        """Return the units of what is left: the text has ended."""
        if self._partial:
            self._lines.append(self._partial)
            self._partial = ""
        units = self._advance(last=True)
        if self._fence is not None:
            units.append(Unit(kind="fence_close", text=""))
            self._fence = None
        return units

    def _advance(self, *, last: bool) -> list[Unit]:
        units: list[Unit] = []
        while self._lines:
            if self._fence is not None:
                units += self._code(self._fence)
                continue
            starts = self._starts(self._lines)
            if not starts:
                self._lines = []
            elif starts[0].fence:
                units.append(self._open_fence(starts[0]))
            elif last or len(starts) > 1:
                units += self._blocks(starts, last=last)
            else:
                break
        return units

    def _code(self, fence: _Fence) -> list[Unit]:
        units: list[Unit] = []
        for number, line in enumerate(self._lines):
            if fence.closed_by(line):
                self._fence = None
                self._gap = True
                self._lines = self._lines[number + 1 :]
                return [*units, Unit(kind="fence_close", text="")]
            units.append(fence.take(line))
        self._lines = []
        return units

    def _open_fence(self, start: _Start) -> Unit:
        opening = _FENCE.match(self._lines[start.line])
        assert opening is not None
        language = opening[3].strip().partition(" ")[0]
        self._fence = _Fence(marker=opening[2], indent=len(opening[1]), language=language)
        self._lines = self._lines[start.line + 1 :]
        return Unit(kind="fence_open", text=language, gap=start.gap)

    def _blocks(self, starts: list[_Start], *, last: bool) -> list[Unit]:
        """Take the blocks before the first fence, and of them all but the open one."""
        count = next((n for n, start in enumerate(starts) if start.fence), len(starts))
        if count == len(starts) and not last:
            count -= 1
        units = [self._unit(self._lines, starts, number) for number in range(count)]
        if count < len(starts):
            self._gap = starts[count].gap
            self._lines = self._lines[starts[count].line :]
        else:
            self._lines = []
        return units

    @staticmethod
    def _unit(lines: list[str], starts: list[_Start], number: int) -> Unit:
        end = starts[number + 1].line if number + 1 < len(starts) else len(lines)
        text = "\n".join(lines[starts[number].line : end])
        return Unit(kind="markdown", text=text.rstrip(), gap=starts[number].gap)

    def _starts(self, lines: list[str]) -> list[_Start]:
        """Return where the blocks and the items of outer lists begin."""
        starts: list[_Start] = []
        first_item = False
        for token in self._parser.parse("\n".join(lines)):
            if token.map is None or token.nesting < 0:
                continue
            line = token.map[0]
            if token.level == 0 and token.type.endswith("list_open"):
                first_item = True
            elif token.level == 0:
                starts.append(_Start(line=line, gap=True, fence=token.type == "fence"))
            elif token.level == 1 and token.type == "list_item_open":
                gap = first_item or not lines[line - 1].strip()
                starts.append(_Start(line=line, gap=gap))
                first_item = False
        if starts:
            starts[0] = replace(starts[0], gap=self._gap)
        return starts
