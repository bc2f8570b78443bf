"""The real program in a process of its own, forked from one that has its modules loaded.

That spares each run a second of imports. Where they matter, start the interpreter instead.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from typing import Any

LIMIT = 30.0
"""Seconds that a program may take to start and do its work on a busy machine."""

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    [
        "hermes.hermes_cli.main",
        "hermes.hermes_cli.commands.chat",
        "hermes.hermes_cli.terminal.conversation",
        "hermes.hermes_cli.terminal.jsonl",
        "hermes.hermes_cli.terminal.plain",
        "hermes.gateway.run",
        "hermes.sessions.sql",
        "support.process",
        "uvloop",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended."""

    code: int
    out: str
    err: str


class Program:
    """One run of ``hermes``; ``out`` and ``err`` are what it writes."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self._transports: list[asyncio.ReadTransport] = []
        self.out = asyncio.StreamReader(limit=2**24)
        self.err = asyncio.StreamReader(limit=2**24)

    async def listen(self, out: int, err: int) -> None:
        """Read from the pipes that the program writes to."""
        loop = asyncio.get_running_loop()
        for reader, descriptor in ((self.out, out), (self.err, err)):
            protocol = asyncio.StreamReaderProtocol(reader)
            file = os.fdopen(descriptor, "rb", 0)
            transport, _ = await loop.connect_read_pipe(lambda p=protocol: p, file)
            self._transports.append(transport)

    def hang_up(self) -> None:
        """Close the reading end of its standard output."""
        self._transports[0].close()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        loop.add_reader(self._process.sentinel, lambda: done.done() or done.set_result(None))
        try:
            await done
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    async def stop(self) -> None:
        """End it if it still runs, and close what was read from."""
        if self._process.exitcode is None:
            self._process.kill()
            await self.wait()
        for transport in self._transports:
            transport.close()
        self._process.close()


def _child(
    arguments: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[Any]
) -> None:
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor.detach(), target)
    os.environ.clear()
    os.environ.update(environment)

    from hermes.hermes_cli.main import run

    code = run(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@asynccontextmanager
async def started(
    *arguments: str, stdin: bytes | None = None, **environment: str
) -> AsyncIterator[Program]:
    """Start ``hermes`` with these arguments; it is ended with the block."""
    _serve()
    source, sink = os.pipe()
    os.write(sink, stdin or b"")
    os.close(sink)
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    process = _forks.Process(
        target=_child,
        args=(arguments, {**os.environ, **environment}, _Descriptors((source, out_end, err_end))),
        daemon=True,
    )
    process.start()
    for descriptor in (source, out_end, err_end):
        os.close(descriptor)
    program = Program(process)
    await program.listen(out, err)
    try:
        yield program
    finally:
        await program.stop()


def _serve() -> None:
    """Start the process to fork from, once; its modules are found as this one's are."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


class _Descriptors(tuple[int, ...]):
    """Descriptors that a process that is being started gets copies of."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([DupFd(number) for number in self],)


async def ran(*arguments: str, stdin: bytes | None = None, **environment: str) -> Ended:
    """Run ``hermes`` to its end."""
    async with (
        asyncio.timeout(LIMIT),
        started(*arguments, stdin=stdin, **environment) as program,
    ):
        out, err = await asyncio.gather(program.out.read(), program.err.read())
        return Ended(code=await program.wait(), out=out.decode(), err=err.decode())
