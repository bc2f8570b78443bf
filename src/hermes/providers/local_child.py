"""Supervision of the local model's process: up on demand, up again after a crash, down when idle.

What is asked of the model is not known here; requests wait in the process's own queue.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hermes.errors import LocalModelError, ProviderError
from hermes.providers.local_catalogue import Weights
from hermes.providers.local_machine import Machine, find_problem, read_machine
from hermes.providers.local_process import WORKER_COMMAND, Address, Worker, open_worker

_log = logging.getLogger(__name__)

_NOTICE_SECONDS = 2.0

Warm: TypeAlias = Callable[[Address], Awaitable[None]]
"""Called once after each start, before anybody asks something; its failure is only logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPolicy:
    """When the process is started, given up and ended; times in seconds.

    The wait before a restart doubles from ``backoff`` to ``most_backoff``; after ``attempts``
    failures in a row, none of which lasted ``stable``, those who wait are refused.
    """

    idle: float = 600.0
    ready: float = 120.0
    backoff: float = 0.5
    most_backoff: float = 30.0
    attempts: int = 3
    stable: float = 60.0
    command: tuple[str, ...] = WORKER_COMMAND

    def pause(self, failures: int) -> float:
        """Return how long to wait after so many failures in a row."""
        return min(self.backoff * 2.0 ** (failures - 1), self.most_backoff)


async def no_warming(_address: Address) -> None:
    """Leave a fresh process alone."""


class _Presence:
    """Where the model answers now, and those who wait for that."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self._up: asyncio.Future[Address] | None = None
        self._down = asyncio.Event()

    def address(self) -> asyncio.Future[Address]:
        """Return what is, or will be, the address."""
        if self._up is None:
            self._up = asyncio.get_running_loop().create_future()
        return self._up

    def publish(self, worker: Worker) -> None:
        self.worker = worker
        self._down.clear()
        self.address().set_result(worker.address)

    def withdraw(self, worker: Worker) -> None:
        """From here on those who ask wait for the next process."""
        if self.worker is worker:
            self.worker = self._up = None
            self._down.set()

    def refuse(self, error: LocalModelError) -> None:
        """Disappoint those who wait."""
        if self._up is not None and not self._up.done():
            self._up.set_exception(error)
            self._up.exception()  # nobody may be waiting
        self._up = None

    async def gone(self, address: Address) -> bool:
        if self._serves(address):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._down.wait(), _NOTICE_SECONDS)
        return not self._serves(address)

    def _serves(self, address: Address) -> bool:
        return self.worker is not None and self.worker.address == address


class LocalChild:
    """The process that runs one model, kept by one task of the event loop that first uses it."""

    def __init__(
        self,
        weights: Weights,
        find_file: Callable[[], Path | None],
        *,
        warm: Warm = no_warming,
        policy: ChildPolicy | None = None,
        machine: Callable[[], Machine] = read_machine,
    ) -> None:
        self._weights = weights
        self._find_file = find_file
        self._warm = warm
        self._policy = policy or ChildPolicy()
        self._machine = machine
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._leases = 0
        self._last_used = 0.0
        self._closed = False
        self._presence = _Presence()

    @property
    def pid(self) -> int | None:
        """The id of the running process, ``None`` while there is none."""
        worker = self._presence.worker
        return worker.pid if worker else None

    def start(self) -> None:
        """Begin to bring the model up in the background; idempotent."""
        if self._closed:
            raise LocalModelError("The local model has been shut down.", code="local_model_closed")
        self._wanted.set()
        if self._task is None:
            # Kept here and ended by aclose; the helper for such tasks lives in a higher layer.
            self._task = asyncio.get_running_loop().create_task(self._supervise())
            self._task.add_done_callback(self._ended)

    @asynccontextmanager
    async def lease(self) -> AsyncGenerator[Address]:
        """Have the model up for as long as the context is open.

        Raises:
            LocalModelError: it cannot run here, failed several times in a row or was closed.
        """
        self.start()
        self._leases += 1
        try:
            yield await self._address()
        finally:
            self._leases -= 1
            self._last_used = _now()

    async def gone(self, address: Address) -> bool:
        """Whether the process at ``address`` has ended; waits a moment for that news."""
        return await self._presence.gone(address)

    async def aclose(self) -> None:
        """End the process and wait until it is gone; idempotent."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._presence.refuse(
            LocalModelError("The local model has been shut down.", code="local_model_closed")
        )

    async def _address(self) -> Address:
        try:
            async with asyncio.timeout(self._policy.ready):
                return await asyncio.shield(self._presence.address())
        except TimeoutError as error:
            raise LocalModelError("The local model did not start in time.") from error

    async def _supervise(self) -> None:
        failures = 0
        while True:
            await self._wanted.wait()
            began = _now()
            try:
                await self._run()
            except LocalModelError as error:
                lasted = _now() - began >= self._policy.stable
                failures = 1 if lasted else failures + 1
                if error.code != LocalModelError.code or failures >= self._policy.attempts:
                    self._wanted.clear()
                    self._presence.refuse(error)
                if error.code == LocalModelError.code:
                    await asyncio.sleep(self._policy.pause(failures))
            else:
                failures = 0

    async def _run(self) -> None:
        """Run one process until it has been idle for long enough.

        Raises:
            LocalModelError: it cannot start here, or ended by itself.
        """
        file = await asyncio.to_thread(self._find_file)
        problem = find_problem(await asyncio.to_thread(self._machine), self._weights, file)
        if problem is not None:
            raise problem
        assert file is not None
        async with open_worker(self._policy.command, file, self._policy.ready) as worker:
            self._last_used = _now()
            self._presence.publish(worker)
            _log.info("local model %s is ready (pid %d)", self._weights.name, worker.pid)
            try:
                await self._watch(worker)
            finally:
                self._presence.withdraw(worker)

    async def _watch(self, worker: Worker) -> None:
        async with asyncio.TaskGroup() as group:
            end = group.create_task(worker.ended())
            if not self._leases:
                group.create_task(self._warm_up(worker.address))
            while not end.done() and (left := self._idle_left()) > 0:
                await asyncio.wait({end}, timeout=left)
            if not end.done():
                self._wanted.clear()
                self._presence.withdraw(worker)
                end.cancel()
                return
        how = end.result()
        _log.warning("the local model's process ended by itself: %s", how)
        raise LocalModelError("The local model's process ended unexpectedly.")

    async def _warm_up(self, address: Address) -> None:
        try:
            await self._warm(address)
        except (ProviderError, OSError):
            _log.warning("the local model could not be warmed up", exc_info=True)

    def _idle_left(self) -> float:
        if self._leases:
            return self._policy.idle
        return self._last_used + self._policy.idle - _now()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Only ``aclose`` ends supervision; after a defect the next demand begins anew."""
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the local model's supervision failed", exc_info=error)
            self._presence.refuse(LocalModelError("The local model failed. The log says why."))


def _now() -> float:
    return asyncio.get_running_loop().time()
