"""Blocking work of tools, in one bounded pool of threads.

A thread cannot be stopped from outside: work that may take long asks its ``Stop`` between pieces.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

MAX_THREADS = 8
"""Files and pipes seldom profit from more."""

_STOP_SECONDS = 0.5

P = ParamSpec("P")
T = TypeVar("T")


class Stopped(BaseException):
    """Ends work whose caller was cancelled; never seen outside the pool."""


class Stop:
    """Whether the caller of a piece of blocking work still wants it."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask the work to end."""
        self._event.set()

    def check(self) -> None:
        """Raise ``Stopped`` when the work is no longer wanted."""
        if self._event.is_set():
            raise Stopped


async def run_blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in the pool and return its value.

    When cancelled, work that has not begun never begins; for work that runs, see ``run_stoppable``.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool(), lambda: function(*args, **kwargs))


async def run_stoppable(function: Callable[[Stop], T]) -> T:
    """Run work that asks its ``Stop``; cancelling waits a moment for the work to have ended."""
    stop = Stop()
    loop = asyncio.get_running_loop()
    work = loop.run_in_executor(_pool(), _guarded, function, stop)
    try:
        return (await asyncio.shield(work))[0]
    except asyncio.CancelledError:
        stop.set()
        work.add_done_callback(_forget)
        if not work.cancel():
            await asyncio.wait({work}, timeout=_STOP_SECONDS)
        raise


def _guarded(function: Callable[[Stop], T], stop: Stop) -> tuple[T]:
    try:
        stop.check()
        return (function(stop),)
    except Stopped:
        raise RuntimeError("stopped work has no value") from None


def _forget(work: "asyncio.Future[tuple[T]]") -> None:
    if not work.cancelled():
        work.exception()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="hermes-tools")
