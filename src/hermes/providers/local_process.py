"""One process of the local model: started, asked for its address, ended.

When to start or end it is not decided here.
"""

import asyncio
import json
import logging
import os
import secrets
import sys
import tempfile
from asyncio import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hermes.errors import LocalModelError
from hermes.providers import local_worker

_log = logging.getLogger(__name__)

CONTEXT_TOKENS = 8192
"""The context that the model runs with; its own limit is higher, memory and speed are not."""

_END_SECONDS = 3.0
_MOST_THREADS = 4
_TAIL_BYTES = 2000

WORKER_COMMAND = (sys.executable, "-P", local_worker.__file__)
"""By path, so that it runs the same whether or not the package is installed; ``-P`` because the
folder of the file holds modules named like those of the standard library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a running model answers; ``base_url`` has no ``/v1``, the key opens it."""

    base_url: str
    key: str


class Worker:
    """A process that is ready to answer."""

    def __init__(self, address: Address, process: subprocess.Process, log: IO[bytes]) -> None:
        self.address = address
        self._process = process
        self._log_file = log

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def ended(self) -> str:
        """Wait for the process to end by itself; return how it ended, for the log."""
        status = await self._process.wait()
        return f"status {status}{await asyncio.to_thread(_tail, self._log_file)}"


@asynccontextmanager
async def open_worker(
    command: tuple[str, ...], weights: Path, ready_seconds: float
) -> AsyncGenerator[Worker]:
    """Start the model and wait until it answers; leaving the context ends the process.

    Raises:
        LocalModelError: it ended or was silent before it was ready.
    """
    with await asyncio.to_thread(tempfile.TemporaryFile) as log:
        # A session of its own: Ctrl-C in the terminal is for the server, which then ends it.
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise LocalModelError(f"The local model did not start: {error.strerror}.") from error
        try:
            yield Worker(await _handshake(process, weights, ready_seconds, log), process, log)
        finally:
            await asyncio.shield(_end(process))


async def _handshake(
    process: subprocess.Process, weights: Path, ready_seconds: float, log: IO[bytes]
) -> Address:
    assert process.stdin is not None
    assert process.stdout is not None
    key = secrets.token_hex(16)
    settings = {
        "weights": str(weights),
        "key": key,
        "context": CONTEXT_TOKENS,
        "threads": min(_MOST_THREADS, os.cpu_count() or 1),
    }
    try:
        async with asyncio.timeout(ready_seconds):
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            await process.stdin.drain()
            answer = json.loads(await process.stdout.readline())
        return Address(base_url=answer["address"], key=key)
    except TimeoutError:
        why = f"it was not ready after {ready_seconds:.0f} s"
    except (OSError, ValueError):  # the pipe broke or ended
        why = "its process ended"
    _log.warning("the local model did not start: %s%s", why, await asyncio.to_thread(_tail, log))
    raise LocalModelError(f"The local model did not start: {why}. The log says more.")


async def _end(process: subprocess.Process) -> None:
    """Close the pipe, which ends the worker; a process that does not heed it is killed."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL_BYTES))
    text = log.read().decode(errors="replace").strip()
    return f"\n{text}" if text else ""
