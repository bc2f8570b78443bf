"""One exact piece of text replaced by another, and help for the model when that cannot be done.

Works on text; no file is touched here.
"""

import difflib
import heapq
from collections.abc import Callable
from dataclasses import dataclass

from hermes.tools.base import ToolFailure
from hermes.tools.preview import head_of

_MAX_LISTED = 5
_MAX_COMPARED = 200_000
_MAX_RATED = 50
_MAX_NEAR = 3
_MIN_RATIO = 0.6
_CANDIDATE_CHARS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """The text after a patch, the first lines (from 1) that were changed, and how it was found."""

    text: str
    lines: tuple[int, ...]
    more_lines: bool = False
    exact: bool = True


def apply_patch(text: str, old: str, new: str, *, replace_all: bool = False) -> Patched:
    """Replace ``old`` by ``new``: the only occurrence, or all of them.

    Line ends of the text are kept. When ``old`` does not occur as it stands, the one place is taken
    where it does but for white space at line ends or a constant indentation.

    Raises:
        ToolFailure: it does not occur, or more than once; the message helps to do better.
    """
    if not old:
        raise ToolFailure("old_string is empty. Use write_file to make a file.")
    if old == new:
        raise ToolFailure("old_string and new_string are the same.")
    if old not in text and "\r\n" in text:
        old, new = _with_crlf(old), _with_crlf(new)
    places = _places(text, old)
    if not places:
        return _apply_loosely(text, old, new)
    lines = tuple(text.count("\n", 0, place) + 1 for place in places[:_MAX_LISTED])
    if len(places) > 1 and not replace_all:
        shown = ", ".join(map(str, lines)) + (", ..." if len(places) > _MAX_LISTED else "")
        raise ToolFailure(
            f"old_string occurs {len(places)} times (lines {shown}). Add lines around it to name "
            "one place, or set replace_all."
        )
    more = len(places) > len(lines)
    return Patched(text=text.replace(old, new), lines=lines, more_lines=more)


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, old: str) -> list[int]:
    places: list[int] = []
    place = text.find(old)
    while place >= 0:
        places.append(place)
        place = text.find(old, place + len(old))
    return places


def _apply_loosely(text: str, old: str, new: str) -> Patched:
    lines = text.split("\n")
    wanted = old.removesuffix("\n").split("\n")
    replacement = new.removesuffix("\n").split("\n") if new else []
    if not any(line.strip() for line in wanted):
        raise ToolFailure("old_string does not occur in the file.")
    same_end = _windows(lines, wanted, str.rstrip)
    found = same_end or _windows(lines, wanted, str.strip)
    if len(found) == 1:
        start = found[0]
        shift = _shift(lines[start : start + len(wanted)], wanted)
        if shift is not None:
            moved = [_moved(line, shift) for line in replacement]
            if None not in moved:
                ending = "\r" if lines[start].endswith("\r") else ""
                placed = [(line or "").rstrip("\r") + ending for line in moved]
                result = [*lines[:start], *placed, *lines[start + len(wanted) :]]
                return Patched(text="\n".join(result), lines=(start + 1,), exact=False)
    raise ToolFailure("old_string does not occur in the file." + _candidates(lines, wanted))


def _windows(lines: list[str], wanted: list[str], strip: Callable[[str], str]) -> list[int]:
    """Return where the wanted lines stand when both sides are stripped."""
    stripped = [strip(line) for line in wanted]
    have = [strip(line) for line in lines]
    size = len(stripped)
    return [
        start
        for start in range(len(have) - size + 1)
        if have[start] == stripped[0] and have[start : start + size] == stripped
    ]


def _shift(have: list[str], wanted: list[str]) -> tuple[str, str] | None:
    """Return what to take off and put before each line, if it is the same for all of them."""
    shifts = {
        _one_shift(_indent(there), _indent(asked))
        for there, asked in zip(have, wanted, strict=True)
        if asked.strip()
    }
    return shifts.pop() if len(shifts) == 1 else None


def _one_shift(there: str, asked: str) -> tuple[str, str] | None:
    if there.endswith(asked):
        return "", there.removesuffix(asked)
    if asked.endswith(there):
        return asked.removesuffix(there), ""
    return None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _moved(line: str, shift: tuple[str, str]) -> str | None:
    take, put = shift
    if not line.strip():
        return line
    return put + line.removeprefix(take) if line.startswith(take) else None


def _candidates(lines: list[str], wanted: list[str]) -> str:
    """Name the lines most like the first wanted one."""
    first = next(line.strip() for line in wanted if line.strip())[:_CANDIDATE_CHARS]
    # Similarity costs 50 us a line; common triples of characters find what is worth it in one.
    triples = {first[at : at + 3] for at in range(max(len(first) - 2, 1))}
    shared = [
        (sum(triple in line for triple in triples), number)
        for number, line in enumerate(lines[:_MAX_COMPARED])
    ]
    matcher = difflib.SequenceMatcher(a="", b=first, autojunk=False)
    near: list[tuple[float, int]] = []
    for count, number in heapq.nlargest(_MAX_RATED, shared):
        matcher.set_seq1(lines[number].strip()[:_CANDIDATE_CHARS])
        ratio = matcher.ratio() if count else 0.0
        if ratio >= _MIN_RATIO:
            near.append((-ratio, number))
    if not near:
        return " Read the file again before patching."
    shown = [
        f"{number + 1}: {head_of(lines[number], _CANDIDATE_CHARS)}"
        for _, number in sorted(near)[:_MAX_NEAR]
    ]
    return " Lines most like its first one:\n" + "\n".join(shown)
