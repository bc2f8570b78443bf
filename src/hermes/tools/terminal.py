"""The tool that runs a shell command.

It judges no command: what may run is decided before the call. Quoting is the model's affair, for
a shell is what it asks for.
"""

import asyncio
import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from hermes.messages import JsonObject, ToolResult, ToolSpec
from hermes.redaction import excerpt
from hermes.tools.base import FunctionTool, ToolContext, ToolFailure
from hermes.tools.blocking import run_blocking
from hermes.tools.output import Ends, decode, is_binary, readable
from hermes.tools.paths import resolve
from hermes.tools.preview import head_of, left_out, tail_of
from hermes.tools.process_group import ProcessGroup, open_group
from hermes.tools.results import ResultStore

_log = logging.getLogger(__name__)

_END_BYTES = 64 * 1024
_END_CHARS = 14_000
_AFTER_EXIT_SECONDS = 1.0
_QUIET_SECONDS = 0.1
_PROGRESS_SECONDS = 1.0
_PROGRESS_CHARS = 200
_PROGRESS_SAMPLE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalLimits:
    """Bounds of a command: seconds, and the bytes of its output that are kept on disk.

    ``grace`` is the time between being asked to end and being killed.
    """

    default_timeout: int = 180
    max_timeout: int = 600
    grace: float = 2.0
    kept_bytes: int = 50 * 2**20


def terminal_tool(store: ResultStore, limits: TerminalLimits | None = None) -> FunctionTool:
    """Return the tool; output too long to show is kept whole in ``store``."""
    bounds = limits or TerminalLimits()

    async def terminal(arguments: JsonObject, context: ToolContext) -> ToolResult:
        seconds = min(arguments.get("timeout", bounds.default_timeout), bounds.max_timeout)
        return await _run(arguments, context, store, bounds, seconds)

    return FunctionTool(spec=_spec(bounds), function=terminal)


def _spec(limits: TerminalLimits) -> ToolSpec:
    return ToolSpec(
        name="terminal",
        description=(
            "Run a shell command (bash) and return its output and exit code. Nothing can be "
            "typed into it. To leave a process running, add & and send its output to a file."
        ),
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1},
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": limits.max_timeout,
                    "description": f"seconds (default {limits.default_timeout})",
                },
                "workdir": {"type": "string", "description": "folder to run in"},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )


async def _run(
    arguments: JsonObject,
    context: ToolContext,
    store: ResultStore,
    limits: TerminalLimits,
    seconds: float,
) -> ToolResult:
    command: str = arguments["command"]
    if "\0" in command:
        raise ToolFailure("The command holds a NUL character.")
    shown: str = arguments.get("workdir", ".")
    workdir = resolve(shown, context)
    shell = await run_blocking(_prepare, workdir, shown, context.environment)
    begun = time.monotonic()
    timed_out = False
    try:
        async with (
            _Capture(store, context, limits.kept_bytes) as capture,
            open_group(
                (shell, "-c", command), workdir=workdir, environment=context.environment
            ) as group,
        ):
            try:
                async with asyncio.timeout(seconds):
                    await _follow(group, capture)
            except TimeoutError:
                timed_out = True
                await group.terminate(limits.grace)
            left_running = await _drain(group, capture)
            code = group.exit_code
    except OSError as error:
        raise ToolFailure(f"The command could not be run: {error.strerror}.") from error
    notes = [_ending(code), f"{time.monotonic() - begun:.1f} s"]
    if timed_out:
        notes[0] = f"timed out after {seconds:g} s and was killed"
    elif left_running:
        notes.append("a background process still runs; its further output is not captured")
    return ToolResult(
        call_id=context.call_id,
        name="terminal",
        text=f"{capture.text()}\n[{'; '.join(notes)}]",
        is_error=timed_out or code != 0,
        stored_as=capture.stored_as,
    )


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _prepare(workdir: Path, shown: str, environment: Mapping[str, str]) -> str:
    """Check the folder and return the shell."""
    if not workdir.is_dir():
        raise ToolFailure(f"The folder {shown} does not exist.")
    search = environment.get("PATH", os.defpath)
    shell = shutil.which("bash", path=search) or shutil.which("sh", path=search)
    return shell or "/bin/sh"


async def _follow(group: ProcessGroup, capture: "_Capture") -> None:
    """Take output until the command itself has ended."""
    ended = asyncio.ensure_future(group.wait())
    reading: asyncio.Future[bytes] | None = None
    try:
        while True:
            reading = asyncio.ensure_future(group.read())
            await asyncio.wait({ended, reading}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                return
            data = reading.result()
            if not data:
                await ended
                return
            await capture.add(data)
            if ended.done():
                return
    finally:
        ended.cancel()
        if reading is not None and reading.cancel():
            # The stream takes no second reader before the first is gone.
            await asyncio.wait({reading})


async def _drain(group: ProcessGroup, capture: "_Capture") -> bool:
    """Take what is left in the pipe; return whether some process still holds it."""
    deadline = time.monotonic() + _AFTER_EXIT_SECONDS
    while time.monotonic() < deadline:
        try:
            async with asyncio.timeout(_QUIET_SECONDS):
                data = await group.read()
        except TimeoutError:
            return True
        if not data:
            return False
        await capture.add(data)
    return True


class _Capture:
    """A command's output: both ends in memory, the whole on disk once it is long."""

    def __init__(self, store: ResultStore, context: ToolContext, kept_bytes: int) -> None:
        self._store = store
        self._context = context
        self._kept_bytes: int = kept_bytes
        self._ends = Ends(_END_BYTES, _END_BYTES)
        self._file: BinaryIO | None = None
        self._lock = threading.Lock()
        self._begun = False
        self._written = 0
        self._at_line_start = True
        self._reported = time.monotonic()
        self.stored_as = ""

    async def __aenter__(self) -> "_Capture":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.shield(run_blocking(self._close, kind is not None))

    async def add(self, data: bytes) -> None:
        """Take the next output; waits for the disk, so that a fast command waits too."""
        if self._ends.has_room(len(data)):
            self._ends.add(data)
        else:
            whole = data if self._begun else self._ends.head + self._ends.tail + data
            self._ends.add(data)
            if self._written < self._kept_bytes:
                await run_blocking(self._write, whole)
        self._report(data)

    def text(self) -> str:
        """What the model is shown of the output."""
        ends = self._ends
        if ends.total == 0:
            return "(no output)"
        if is_binary(ends.head):
            return f"(binary output, {ends.total:,} bytes, not shown)"
        if not ends.overflowed:
            return readable(decode(ends.head + ends.tail)).rstrip("\n")
        head = head_of(readable(decode(ends.head)), _END_CHARS)
        tail = tail_of(readable(decode(ends.tail)), _END_CHARS).rstrip("\n")
        return head + left_out(ends.total - 2 * _END_CHARS, self._advice(), "bytes") + tail

    def _advice(self) -> str:
        if not self.stored_as:
            return "they could not be kept"
        whole = "the whole" if self._written >= self._ends.total else f"the first {self._written:,}"
        return f'read_result(id="{self.stored_as}") gives {whole}'

    def _write(self, data: bytes) -> None:
        with self._lock:
            try:
                if not self._begun:
                    self._begun = True
                    self.stored_as, self._file = self._store.create(self._context)
                if self._file is None:
                    return
                view = memoryview(data)[: self._kept_bytes - self._written]
                while view:
                    size = self._file.write(view)
                    self._written += size
                    view = view[size:]
            except OSError:
                _log.exception("the output of a command cannot be kept, or no further")
                self._kept_bytes = self._written

    def _close(self, unwanted: bool) -> None:
        with self._lock:
            if self._file is None:
                return
            self._file.close()
            self._file = None
            if unwanted:
                self._store.discard(self._context, self.stored_as)
            else:
                self._store.added(self._context.results, self._written)

    def _report(self, data: bytes) -> None:
        """Tell the last whole line now and then; part of a line could be part of a secret."""
        starts_line, self._at_line_start = self._at_line_start, data.endswith((b"\n", b"\r"))
        now = time.monotonic()
        if now - self._reported < _PROGRESS_SECONDS:
            return
        sample = data[-_PROGRESS_SAMPLE:]
        lines = readable(decode(sample).replace("\r", "\n")).split("\n")
        whole = lines[:-1] if starts_line and len(sample) == len(data) else lines[1:-1]
        line = next((line for line in reversed(whole) if line.strip()), "")
        if line:
            self._reported = now
            self._context.progress(excerpt(line, _PROGRESS_CHARS))
