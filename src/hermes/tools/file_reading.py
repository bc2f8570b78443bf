"""A text file read in pages, whatever its size and encoding.

Blocks; the tools call it in the pool.
"""

import os
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from hermes.tools.base import ToolFailure
from hermes.tools.blocking import Stop
from hermes.tools.output import is_binary
from hermes.tools.paths import open_regular
from hermes.tools.preview import head_of

PAGE_LINES = 2000
PAGE_CHARS = 24_000
LINE_CHARS = 2000
"""A longer line is cut; it may be a whole data file."""

MAX_WHOLE_BYTES = 16 * 2**20
"""Largest file that is read as a whole (to patch it, or to decode UTF-16)."""

_CHUNK = 2**20
_COUNTED_BYTES = 64 * 2**20
_LINE_BYTES = LINE_CHARS * 4 + 20_000
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """Lines of a file from number ``first`` on; ``total`` is ``None`` when it was not counted.

    ``more`` says whether lines follow after ``last``.
    """

    text: str
    first: int
    last: int
    more: bool
    total: int | None


def read_page(path: Path, shown: str, first: int, count: int, stop: Stop) -> TextPage:
    """Return up to ``count`` lines from line ``first`` (from 1), bounded in characters.

    Raises:
        ToolFailure: it is no readable text file, or has fewer lines.
    """
    with os.fdopen(open_regular(path, shown), "rb") as file:
        sample = file.read(8192)
        if sample.startswith(_UTF16):
            file.seek(0)
            return _page_of_text(_decode_utf16(file, shown), shown, first, count)
        if is_binary(sample):
            size = os.fstat(file.fileno()).st_size
            raise ToolFailure(f"{shown} is a binary file ({size:,} bytes), not text.")
        file.seek(len(_UTF8_MARK) if sample.startswith(_UTF8_MARK) else 0)
        passed = _skip_lines(file, first - 1, stop)
        if passed < first - 1:
            raise ToolFailure(f"{shown} has only {passed} lines.")
        lines = _take_lines(file, count, stop)
        last = first - 1 + len(lines)
        more = bool(file.peek(1))
        total = _count_rest(file, last, stop) if more else last
        return TextPage(text="\n".join(lines), first=first, last=last, more=more, total=total)


def read_whole(path: Path, shown: str) -> bytes:
    """Return a regular file's bytes.

    Raises:
        ToolFailure: it cannot be read or is too large.
    """
    with os.fdopen(open_regular(path, shown), "rb") as file:
        data = file.read(MAX_WHOLE_BYTES + 1)
    if len(data) > MAX_WHOLE_BYTES:
        raise ToolFailure(f"{shown} is larger than {MAX_WHOLE_BYTES // 2**20} MB.")
    return data


def read_start(path: Path, shown: str, size: int) -> bytes:
    """Return the first ``size`` bytes of a regular file.

    Raises:
        ToolFailure: it cannot be read.
    """
    with os.fdopen(open_regular(path, shown), "rb") as file:
        return file.read(size)


def _decode_utf16(file: BufferedReader, shown: str) -> str:
    data = file.read(MAX_WHOLE_BYTES + 1)
    if len(data) > MAX_WHOLE_BYTES:
        raise ToolFailure(f"{shown} is UTF-16 and larger than {MAX_WHOLE_BYTES // 2**20} MB.")
    return data.decode("utf-16", errors="replace")


def _page_of_text(text: str, shown: str, first: int, count: int) -> TextPage:
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    if first - 1 > len(lines):
        raise ToolFailure(f"{shown} has only {len(lines)} lines.")
    taken: list[str] = []
    room = PAGE_CHARS
    for line in lines[first - 1 : first - 1 + count]:
        short = _shorten(line, len(line))
        room -= len(short) + 1
        if room < 0 and taken:
            break
        taken.append(short)
    last = first - 1 + len(taken)
    more = last < len(lines)
    return TextPage(text="\n".join(taken), first=first, last=last, more=more, total=len(lines))


def _skip_lines(file: BufferedReader, count: int, stop: Stop) -> int:
    """Move behind ``count`` lines, a megabyte at a time; return how many there were."""
    passed = 0
    tail = b"\n"
    while passed < count:
        stop.check()
        chunk = file.read(_CHUNK)
        if not chunk:
            return passed + (tail != b"\n")
        found = chunk.count(b"\n")
        if passed + found < count:
            passed += found
            tail = chunk[-1:]
            continue
        position = -1
        for _ in range(count - passed):
            position = chunk.index(b"\n", position + 1)
        file.seek(position + 1 - len(chunk), os.SEEK_CUR)
        return count
    return passed


def _take_lines(file: BufferedReader, count: int, stop: Stop) -> list[str]:
    lines: list[str] = []
    room = PAGE_CHARS
    while len(lines) < count:
        stop.check()
        begun = file.tell()
        line = file.readline(_LINE_BYTES)
        if not line:
            break
        size = len(line)
        if not line.endswith(b"\n"):
            size += _finish_line(file, stop)
        text = _shorten(line.rstrip(b"\r\n").decode(errors="replace"), size)
        room -= len(text) + 1
        if room < 0 and lines:
            file.seek(begun)
            break
        lines.append(text)
    return lines


def _finish_line(file: BufferedReader, stop: Stop) -> int:
    size = 0
    while piece := file.readline(_CHUNK):
        stop.check()
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def _shorten(line: str, size: int) -> str:
    if len(line) <= LINE_CHARS:
        return line
    return f"{head_of(line, LINE_CHARS)} [... line cut, it has {size:,} bytes ...]"


def _count_rest(file: BufferedReader, passed: int, stop: Stop) -> int | None:
    """Count the lines to the end, unless that is far away."""
    size = os.fstat(file.fileno()).st_size
    if size - file.tell() > _COUNTED_BYTES:
        return None
    tail = b"\n"
    while chunk := file.read(_CHUNK):
        stop.check()
        passed += chunk.count(b"\n")
        tail = chunk[-1:]
    return passed + (tail != b"\n")
