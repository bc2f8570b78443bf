"""The real program in a process of its own."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

LIMIT = 30.0
"""Seconds that a program may take to start and do its work on a busy machine."""

_SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended."""

    code: int
    out: str
    err: str


@asynccontextmanager
async def started(
    *arguments: str, stdin: bytes | None = None, **environment: str
) -> AsyncIterator[Process]:
    """Start ``hermes`` with these arguments; it is ended with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hermes",
        *arguments,
        stdin=DEVNULL if stdin is None else PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "PYTHONPATH": str(_SOURCE), **environment},
    )
    if stdin is not None and process.stdin is not None:
        process.stdin.write(stdin)
        process.stdin.close()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def ran(*arguments: str, stdin: bytes | None = None, **environment: str) -> Ended:
    """Run ``hermes`` to its end."""
    async with (
        asyncio.timeout(LIMIT),
        started(*arguments, stdin=stdin, **environment) as process,
    ):
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ended(code=process.returncode, out=out.decode(), err=err.decode())
