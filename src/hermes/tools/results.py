"""Whole outputs on disk: what was too long for the model, to be read in pages.

One folder a session, so no conversation reads another's; the total size is bounded and the oldest
go first. Nothing here decides what is too long.
"""

import hashlib
import logging
import os
import re
import shutil
import threading
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hermes.ids import new_id
from hermes.messages import JsonObject, ToolSpec
from hermes.tools.base import FunctionTool, ToolContext, ToolFailure
from hermes.tools.blocking import run_blocking
from hermes.tools.output import readable
from hermes.tools.preview import head_of

_log = logging.getLogger(__name__)

MAX_TOTAL_BYTES = 512 * 2**20
"""All sessions' kept outputs together."""

PAGE_CHARS = 20_000
"""Longest page given to the model."""

_ID = re.compile(r"res_[0-9a-f]{16}")
_SUFFIX = ".out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A piece of a kept output; positions are bytes, ``end`` is where the next page begins."""

    text: str
    start: int
    end: int
    total: int


class ResultStore:
    """Keeps whole outputs under ``context.results``. Its methods block; call them in the pool."""

    def __init__(self, max_total_bytes: int = MAX_TOTAL_BYTES) -> None:
        self._max_total = max_total_bytes
        self._lock = threading.Lock()
        self._unswept = max_total_bytes

    def create(self, context: ToolContext) -> tuple[str, BinaryIO]:
        """Open a new output for writing and return its id with it; the caller closes the file.

        Raises:
            OSError: the disk refuses.
        """
        folder = session_folder(context.results, context.session_id)
        context.results.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        result_id = new_id("res_", 8)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(folder / f"{result_id}{_SUFFIX}", flags, 0o600)
        return result_id, os.fdopen(descriptor, "wb", buffering=0)

    def keep(self, context: ToolContext, text: str) -> str:
        """Keep a text whole and return its id.

        Raises:
            OSError: the disk refuses.
        """
        data = text.encode(errors="replace")
        result_id, file = self.create(context)
        try:
            with file:
                _write_all(file, data)
        except OSError:
            self.discard(context, result_id)
            raise
        self.added(context.results, len(data))
        return result_id

    def added(self, root: Path, size: int) -> None:
        """Count bytes that were written; now and then the oldest outputs beyond the bound go."""
        with self._lock:
            self._unswept += size
            if self._unswept < self._max_total // 16:
                return
            self._unswept = 0
        self._sweep(root)

    def discard(self, context: ToolContext, result_id: str) -> None:
        """Remove one output; it may be gone already."""
        self._path(context, result_id).unlink(missing_ok=True)

    def read(self, context: ToolContext, result_id: str, offset: int, limit: int) -> Page:
        """Return the page that begins at byte ``offset`` (from the end when negative).

        Raises:
            ToolFailure: there is no such output in this session.
        """
        if not _ID.fullmatch(result_id):
            raise ToolFailure(f"{result_id!r} is not the id of a kept result (res_...).")
        try:
            with self._path(context, result_id).open("rb") as file:
                total = file.seek(0, os.SEEK_END)
                start = min(offset, total) if offset >= 0 else max(total + offset, 0)
                file.seek(start)
                data = file.read(limit * 4 + 20_000)
        except OSError as error:
            raise ToolFailure(f"No result {result_id} is kept in this session.") from error
        text = data.decode(errors="replace")
        piece = head_of(text, limit) or text[:limit]
        size = len(piece.encode()) if "\ufffd" not in piece else _size_of(data, len(piece))
        return Page(text=piece, start=start, end=min(start + size, total), total=total)

    def _path(self, context: ToolContext, result_id: str) -> Path:
        return session_folder(context.results, context.session_id) / f"{result_id}{_SUFFIX}"

    def _sweep(self, root: Path) -> None:
        kept: list[tuple[float, int, Path]] = []
        for path in root.glob(f"*/res_*{_SUFFIX}"):
            try:
                status = path.lstat()
            except OSError:
                continue
            kept.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if total <= self._max_total:
                break
            path.unlink(missing_ok=True)
            total -= size


def session_folder(root: Path, session_id: str) -> Path:
    """Return the folder of a session; its name is safe and unlike any other session's."""
    return root / hashlib.sha256(session_id.encode(errors="replace")).hexdigest()[:40]


def remove_session(root: Path, session_id: str) -> None:
    """Remove what is kept for a session."""
    shutil.rmtree(session_folder(root, session_id), ignore_errors=True)


def read_result_tool(store: ResultStore) -> FunctionTool:
    """Return the tool that reads kept outputs in pages."""

    async def read_result(arguments: JsonObject, context: ToolContext) -> str:
        limit = min(arguments.get("limit", PAGE_CHARS), PAGE_CHARS)
        page = await run_blocking(
            store.read, context, arguments["id"], arguments.get("offset", 0), limit
        )
        if page.start >= page.total:
            return f"[end of the result: it has {page.total:,} bytes]"
        rest = "end" if page.end >= page.total else f"next offset {page.end}"
        return f"{readable(page.text)}\n[bytes {page.start}-{page.end} of {page.total}; {rest}]"

    return FunctionTool(spec=_SPEC, function=read_result)


_SPEC = ToolSpec(
    name="read_result",
    description="Read on in a tool output that was too long and was cut.",
    parameters={
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "res_... as named in the cut output"},
            "offset": {
                "type": "integer",
                "description": "byte to start at (default 0; negative: from the end)",
            },
            "limit": {"type": "integer", "minimum": 1, "description": "characters"},
        },
        "required": ["id"],
        "additionalProperties": False,
    },
)


def _write_all(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _size_of(data: bytes, chars: int) -> int:
    """Return how many bytes decode to the first ``chars`` characters, if not all are UTF-8."""
    return (
        bisect_right(
            range(len(data) + 1), chars, key=lambda size: len(data[:size].decode(errors="replace"))
        )
        - 1
    )
