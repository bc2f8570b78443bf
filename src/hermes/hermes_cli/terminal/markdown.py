"""Units of markdown drawn as lines of a terminal.

Nothing is written here, and nothing is drawn twice; ``screen`` does that.
"""

from typing import ClassVar

from rich.console import COLOR_SYSTEMS, Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListElement, ListItem, Markdown
from rich.markdown import MarkdownElement as Element
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from hermes.hermes_cli.terminal.blocks import Unit, parser

_MAX_WIDTH = 120
"""Columns beyond which lines of text are tiring to read."""

_CODE_THEME = "ansi_dark"
"""The terminal's own sixteen colours, so that it fits a light and a dark background."""

_DIM = Style(dim=True)


class _PlainHeading(Heading):
    """A heading at the left margin, its level shown by its marker."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        marker = "#" * int(self.tag[1:])
        yield Text.assemble((f"{marker} ", _DIM), Text(self.text.plain, Style(bold=True)))


class _PlainCode(CodeBlock):
    """A code block inside another block, without padding or background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _highlight(str(self.text).rstrip("\n"), self.lexer_name)


class _PlainRule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, 40), _DIM)


class _List(ListElement):
    """A list whose numbers stand as they were written."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        start = self.list_start or 0
        for number, item in enumerate(self.items, start):
            assert isinstance(item, _Item)
            mark = "• " if self.list_type == "bullet_list_open" else f"{number}. "
            yield from item.marked(mark, console, options)


class _Item(ListItem):
    def marked(self, mark: str, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the item's lines with ``mark`` before the first and its width before the others."""
        inner = options.update(width=max(1, options.max_width - len(mark)))
        lines = console.render_lines(self.elements, inner, pad=False) or [[]]
        for number, line in enumerate(lines):
            yield Segment(" " * len(mark)) if number else Segment(mark, _DIM)
            yield from line
            yield Segment.line()


class _Answer(Markdown):
    """Markdown as answers use it: HTML is text and a line break is kept."""

    elements: ClassVar[dict[str, type[Element]]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "fence": _PlainCode,
        "code_block": _PlainCode,
        "hr": _PlainRule,
        "bullet_list_open": _List,
        "ordered_list_open": _List,
        "list_item_open": _Item,
    }

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = _PARSER.parse(markup)
        for token in self.parsed:
            for child in token.children or ():
                if child.type == "softbreak":
                    child.type = "hardbreak"


_PARSER = parser()


def _highlight(code: str, language: str) -> Text:
    syntax = Syntax("", language or "text", theme=_CODE_THEME, background_color="default")
    text = syntax.highlight(code)
    text.rstrip()
    return text


def terminal_console() -> Console:
    """Return what knows the colours of the terminal at standard output."""
    return Console(theme=Theme({"markdown.code": "cyan", "markdown.block_quote": "dim"}))


class Painter:
    """Draws units for one terminal; ``console`` only knows its colours and is never written to."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def unit(self, unit: Unit, width: int) -> list[str]:
        """Return a unit's lines; a line of code is left for the terminal to wrap."""
        lines = [""] if unit.gap else []
        if unit.kind == "markdown":
            return lines + self.lines(_Answer(unit.text), width)
        if unit.kind == "code":
            return [*lines, self._ansi(list(self._code(unit).render(self._console)))]
        return [*lines, self.line("```" + unit.text, _DIM)]

    def unfinished(self, unit: Unit, width: int) -> list[str]:
        """Return a unit's lines as ``unit`` does, but none wider than ``width``."""
        if unit.kind == "code":
            return self.lines(self._code(unit), width) or [""]
        return self.unit(unit, width)

    def lines(self, drawable: "Text | Markdown", width: int) -> list[str]:
        """Return what ``drawable`` looks like at ``width`` columns."""
        options = self._console.options.update(width=max(8, min(width, _MAX_WIDTH)), height=None)
        rendered = self._console.render_lines(drawable, options, pad=False)
        lines = [self._ansi(line) for line in rendered]
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        return lines

    def line(self, text: str, style: Style | None = None) -> str:
        """Return one line as it is, however long, in ``style``."""
        return self._ansi([Segment(text, style)])

    def cropped(self, text: Text, width: int) -> str:
        """Return the first row of ``text``, cut to ``width`` columns with an ellipsis."""
        text = text.copy()
        text.end = ""
        text.truncate(max(1, width), overflow="ellipsis")
        return self._ansi(list(text.render(self._console)))

    @staticmethod
    def _code(unit: Unit) -> Text:
        text = _highlight(unit.context + unit.text, unit.language)
        wanted = unit.context.count("\n")
        lines = text.split("\n", allow_blank=True)
        if wanted >= len(lines):
            return Text(unit.text.rstrip(), end="")
        line = lines[wanted]
        line.end = ""
        return line

    def _ansi(self, segments: list[Segment]) -> str:
        system = COLOR_SYSTEMS.get(self._console.color_system or "")
        if self._console.no_color:
            segments = list(Segment.remove_color(segments))
        return "".join(
            segment.style.render(segment.text, color_system=system)
            if segment.style
            else segment.text
            for segment in _without_padding(segments)
            if not segment.control
        )


def _without_padding(segments: list[Segment]) -> list[Segment]:
    """Return a row without the spaces at its end, which would be copied along with the words."""
    segments = list(segments)
    while segments:
        text, style, _ = segments.pop()
        kept = text.rstrip(" ")
        if kept:
            return [*segments, Segment(kept, style)]
    return segments
