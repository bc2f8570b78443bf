"""Stopping and steering a running turn, and tasks that outlive their caller.

Who may stop a turn is decided by the surfaces, not here.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

_log = logging.getLogger(__name__)
_kept: set[asyncio.Task[Any]] = set()


class TurnControl:
    """The handle on one turn: cancel it, or add text for its next tool boundary.

    Use it from the event loop's thread only.
    """

    __slots__ = ("_steers", "_task", "cancel_requested")

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._steers: list[str] = []
        self.cancel_requested = False

    def bind(self, task: asyncio.Task[Any] | None = None) -> None:
        """Make ``task``, else the current one, the one that ``cancel`` stops."""
        self._task = task or asyncio.current_task()

    def release(self) -> None:
        """Forget the task: the turn has ended and ``cancel`` does nothing more."""
        self._task = None

    def cancel(self) -> None:
        """Stop the turn at whatever it waits for; a second call does nothing."""
        if self.cancel_requested:
            return
        self.cancel_requested = True
        if self._task is not None:
            self._task.cancel()

    def absorb_cancel(self) -> bool:
        """Whether the cancellation in hand came from ``cancel`` alone; if so it is taken back."""
        task = self._task
        return self.cancel_requested and task is not None and task.uncancel() == 0

    def steer(self, text: str) -> None:
        """Add text that enters the conversation at the next tool boundary."""
        self._steers.append(text)

    def take_steers(self) -> str:
        """Return the text added since the last call, joined by newlines."""
        text = "\n".join(self._steers)
        self._steers.clear()
        return text


def spawn_kept(coroutine: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
    """Start a task that outlives its caller: it is kept until it ends and its failure is logged."""
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    _kept.add(task)
    task.add_done_callback(_report)
    return task


def _report(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("background task %s failed", task.get_name(), exc_info=error)


async def finish_despite_cancel(coroutine: Coroutine[Any, Any, Any], *, limit: float) -> None:
    """Run ``coroutine`` to its end even while the caller is being cancelled.

    At most ``limit`` seconds are waited; its exception goes out; a cancellation that arrives
    meanwhile is raised again afterwards.
    """
    task = asyncio.ensure_future(coroutine)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task}, timeout=max(0.0, deadline - loop.time()))
        except asyncio.CancelledError as error:
            cancelled = error
        if loop.time() >= deadline and not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=1.0)
            break
    if cancelled is not None:
        if task.done() and not task.cancelled() and (failure := task.exception()) is not None:
            _log.error("work finished under cancellation failed", exc_info=failure)
        raise cancelled
    if not task.done() or task.cancelled():
        raise TimeoutError(f"not finished within {limit:g} s")
    task.result()
