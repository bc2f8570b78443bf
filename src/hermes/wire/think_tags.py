"""Reasoning that a model writes into its answer between tags, told apart as it streams.

Tags that are quoted in code stay text. Nested tags and fences of tildes are not understood.
"""

import itertools
import re
from typing import TypeAlias

from hermes.events import ReasoningDelta, TextDelta

Piece: TypeAlias = TextDelta | ReasoningDelta

_NAMES = ("think", "thinking", "reasoning", "thought")
_MAX_PADDING = 8
_MAX_TAG = len("</>") + max(map(len, _NAMES)) + _MAX_PADDING
_TAG = re.compile(rf"<(/?)({'|'.join(_NAMES)})\s{{0,{_MAX_PADDING}}}>", re.IGNORECASE)
_MARK = re.compile(r"`+|\n|<")


def _may_become_tag(text: str, start: int) -> bool:
    """Whether ``text`` from ``start``, a ``<``, to its end may be the beginning of a tag."""
    if len(text) - start > _MAX_TAG:
        return False
    name = text[start + 1 :].removeprefix("/").lower()
    if any(known.startswith(name) for known in _NAMES):
        return True
    padding = len(name) - len(name.rstrip())
    return 0 < padding <= _MAX_PADDING and name.rstrip() in _NAMES


class _Code:
    """Whether text stands in Markdown code: a span on one line, or a fence."""

    __slots__ = ("_at_line_start", "_is_fence", "_on_first_line", "_run", "_width")

    def __init__(self) -> None:
        self._width = 0
        self._run = 0
        self._is_fence = False
        self._on_first_line = False
        self._at_line_start = True

    def is_idle(self) -> bool:
        """Whether only a backtick could change anything."""
        return not (self._width or self._run)

    def is_code(self) -> bool:
        """Whether the character that comes now stands in code."""
        self._settle()
        return self._width > 0

    def pass_words(self, text: str) -> None:
        """Go over text without a backtick or a line end."""
        if text:
            self._settle()
            self._at_line_start = self._at_line_start and text.isspace()

    def pass_plain(self, text: str) -> None:
        """Go over text without a backtick while idle."""
        last_line = text[text.rfind("\n") + 1 :]
        begins = self._at_line_start or len(last_line) < len(text)
        self._at_line_start = begins and not last_line.strip()

    def pass_backticks(self, count: int) -> None:
        """Go over a run of backticks, perhaps only a part of it."""
        self._run += count

    def pass_line_end(self) -> None:
        """Go over a line end, which a span does not outlive."""
        self._settle()
        self._at_line_start = True
        self._on_first_line = False
        if not self._is_fence:
            self._width = 0

    def _settle(self) -> None:
        """Take the run of backticks that has ended."""
        run, self._run = self._run, 0
        if not run:
            return
        if not self._width:
            self._width = run
            self._is_fence = self._on_first_line = self._at_line_start and run >= 3
        elif self._closes(run):
            self._width = 0
            self._is_fence = False
        self._at_line_start = False

    def _closes(self, run: int) -> bool:
        if self._is_fence:
            return run >= self._width and (self._at_line_start or self._on_first_line)
        return run == self._width


class ThinkFilter:
    """Splits the text of one answer, cut anywhere, into words and reasoning.

    Only what may be the start of a tag is held back, and blanks before the first word. A tag
    that is never closed makes the rest reasoning. A closing tag without an opening one is
    dropped. ``inside``: the model's template has opened the tag already.
    """

    def __init__(self, *, inside: bool = False) -> None:
        self._inside = inside
        self._name = ""
        self._held = ""
        self._code = _Code()
        self._has_words = False
        self._has_tag = inside
        self._blanks: str = ""
        self._is_fresh = True
        self._pieces: list[Piece] = []

    def feed(self, text: str) -> list[Piece]:
        """Return what ``text`` brings, neighbours of one kind made one."""
        if (
            self._has_words
            and not self._inside
            and not self._held
            and "<" not in text
            and "`" not in text
            and self._code.is_idle()
        ):
            self._code.pass_plain(text)
            return [TextDelta(text)] if text else []
        text, self._held = self._held + text, ""
        position = 0
        while position < len(text):
            take = self._take_reasoning if self._inside else self._take_words
            position = take(text, position)
        return self._flush()

    def finish(self) -> list[Piece]:
        """Return what was held back, at the end of the answer."""
        held, self._held = self._held, ""
        if self._inside:
            self._reason(held)
        else:
            self._say(held)
            if self._blanks and not self._has_tag:
                self._pieces.append(TextDelta(self._blanks))
                self._blanks = ""
        return self._flush()

    def _take_words(self, text: str, start: int) -> int:
        """Take text outside of tags up to one; return where what follows it begins."""
        passed = start
        for mark in _MARK.finditer(text, start):
            self._code.pass_words(text[passed : mark.start()])
            passed = mark.end()
            if mark[0] == "\n":
                self._code.pass_line_end()
            elif mark[0] != "<":
                self._code.pass_backticks(len(mark[0]))
            elif self._code.is_code():
                self._code.pass_words("<")
            else:
                end = self._take_tag(text, start, mark.start())
                if end:
                    return end
        self._code.pass_words(text[passed:])
        self._say(text[start:])
        return len(text)

    def _take_tag(self, text: str, start: int, at: int) -> int:
        """Take words from ``start`` and the tag that begins ``at``; return 0 if none does."""
        tag = _TAG.match(text, at)
        if tag is not None:
            self._say(text[start:at])
            self._enter(tag)
            return tag.end()
        if _may_become_tag(text, at):
            self._say(text[start:at])
            self._held = text[at:]
            return len(text)
        self._code.pass_words("<")
        return 0

    def _enter(self, tag: re.Match[str]) -> None:
        self._has_tag = True
        self._code.pass_words(tag[0])
        if not tag[1]:
            self._inside, self._name, self._is_fresh = True, tag[2].lower(), True

    def _take_reasoning(self, text: str, start: int) -> int:
        """Take text inside of a tag up to its end; return where what follows it begins."""
        for tag in _TAG.finditer(text, start):
            if tag[1] and self._name in ("", tag[2].lower()):
                self._reason(text[start : tag.start()])
                self._inside = False
                return tag.end()
        end = text.rfind("<", start)
        if end >= 0 and _may_become_tag(text, end):
            self._held = text[end:]
        else:
            end = len(text)
        self._reason(text[start:end])
        return len(text)

    def _say(self, text: str) -> None:
        if not self._has_words:
            text = self._blanks + text
            first_word = text.lstrip()
            if not first_word:
                self._blanks = text
                return
            self._has_words, self._blanks = True, ""
            text = first_word if self._has_tag else text
        if text:
            self._pieces.append(TextDelta(text))

    def _reason(self, text: str) -> None:
        if self._is_fresh:
            text = text.lstrip()
            self._is_fresh = not text
        if text:
            self._pieces.append(ReasoningDelta(text))

    def _flush(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        if len(pieces) < 2:
            return pieces
        merged: list[Piece] = []
        for kind, group in itertools.groupby(pieces, key=lambda piece: piece.kind):
            text = "".join(piece.text for piece in group)
            merged.append(TextDelta(text) if kind == "text_delta" else ReasoningDelta(text))
        return merged
