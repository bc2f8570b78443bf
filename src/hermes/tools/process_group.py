"""Child processes that can always be ended together with their children.

Each runs in a session of its own, with nothing to read and its output on one pipe. What the output
means is not known here.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hermes.tools.blocking import run_blocking

_END_SECONDS = 5.0
_CHUNK = 256 * 1024


class ProcessGroup:
    """A running command and everything it started in its session."""

    def __init__(self, process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> None:
        self._process = process
        self._output = output

    @property
    def pid(self) -> int:
        """The id of the command's process, of its group and of its session."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal, or ``None`` while it runs."""
        return self._process.returncode

    async def read(self) -> bytes:
        """Return the next output; empty when no process holds the pipe any more."""
        return await self._output.read(_CHUNK)

    async def wait(self) -> int:
        """Wait for the command itself, not for what it left behind, and return its exit code."""
        return await self._process.wait()

    async def terminate(self, grace: float) -> None:
        """Ask every process of the session to end; kill those that have not after ``grace``."""
        await run_blocking(_signal_session, self.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill every process of the session; returns when the command has been reaped."""
        # The group dies at once, without waiting for a thread.
        _signal_group(self.pid, signal.SIGKILL)
        ending = asyncio.ensure_future(self._finish_kill())
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.shield(ending)

    async def _finish_kill(self) -> None:
        await run_blocking(_signal_session, self.pid, signal.SIGKILL)
        await self._process.wait()


@asynccontextmanager
async def open_group(
    arguments: Sequence[str],
    *,
    workdir: Path,
    environment: Mapping[str, str],
    merge_errors: bool = True,
) -> AsyncGenerator[ProcessGroup, None]:
    """Run a command; leaving the context while it runs kills it and all that it started.

    What a finished command left running in the background stays. ``merge_errors`` puts standard
    error on the same pipe, else it is dropped.

    Raises:
        OSError: the command cannot be run.
    """
    loop = asyncio.get_running_loop()
    read_end, write_end = os.pipe()
    output = asyncio.StreamReader(limit=_CHUNK)
    pipe = os.fdopen(read_end, "rb", buffering=0)
    try:
        process = await _start(arguments, workdir, environment, write_end, merge_errors)
    except BaseException:
        pipe.close()
        raise
    finally:
        os.close(write_end)
    group = ProcessGroup(process, output)
    transport: asyncio.BaseTransport | None = None
    try:
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), pipe
        )
        yield group
    finally:
        if process.returncode is None:
            await group.kill()
        if transport is not None:
            transport.close()
        else:
            pipe.close()


async def _start(
    arguments: Sequence[str],
    workdir: Path,
    environment: Mapping[str, str],
    output: int,
    merge_errors: bool,
) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output if merge_errors else subprocess.DEVNULL,
            cwd=workdir,
            env=dict(environment),
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill_started)
        await asyncio.wait({starting}, timeout=_END_SECONDS)
        if starting.done() and starting.exception() is None:
            await ProcessGroup(starting.result(), asyncio.StreamReader()).kill()
        raise


def _kill_started(starting: "asyncio.Future[asyncio.subprocess.Process]") -> None:
    if not starting.cancelled() and starting.exception() is None:
        _signal_group(starting.result().pid, signal.SIGKILL)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _signal_session(pid: int, number: signal.Signals) -> None:
    """Signal the group, and the groups that its members made within the session.

    Job control and ``timeout`` make such groups; only Linux lists processes without a command.
    """
    _signal_group(pid, number)
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - numbers are wanted, not paths
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(int(name)) == pid:
                os.kill(int(name), number)
