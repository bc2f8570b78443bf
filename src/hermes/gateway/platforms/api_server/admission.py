"""How many turns may run at once.

Fairness between clients and queueing are not done here.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol

from aiohttp import web

from hermes.agent.cancel import TurnControl
from hermes.gateway.platforms.api_server.errors import error_response


class _Counted(Protocol):
    _draining: bool
    _inflight_agent_runs: int
    _max_concurrent_runs: int
    _slots: "set[Slot]"
    _idle: asyncio.Event


def concurrency_limited_response(host: _Counted) -> web.Response | None:
    """Return None when a turn may start, else the answer that says when to come back."""
    if host._draining:
        return error_response(
            "The server is shutting down; try again in a moment.",
            status=503,
            code="gateway_draining",
            headers={"Retry-After": "1"},
        )
    limit = host._max_concurrent_runs
    if limit and host._inflight_agent_runs >= limit:
        return error_response(
            f"{limit} turns are running, as many as this server allows; try again in a moment. "
            "The operator can raise gateway.api_server.max_concurrent_runs.",
            status=429,
            code="rate_limit_exceeded",
            headers={"Retry-After": "1"},
        )
    return None


class Slot:
    """One running turn in the count; released once, however often it is asked to.

    The host keeps the slot, and the slot its task, until then.
    """

    __slots__ = ("_host", "control", "task")

    def __init__(self, host: _Counted, control: TurnControl) -> None:
        self._host: _Counted | None = host
        self.control = control
        self.task: asyncio.Future[Any] | None = None
        host._inflight_agent_runs += 1
        host._slots.add(self)
        host._idle.clear()

    def release(self) -> None:
        """Count the turn no more."""
        if self._host is not None:
            self._host._inflight_agent_runs -= 1
            self._host._slots.discard(self)
            if not self._host._slots:
                self._host._idle.set()
            self._host = None


@contextmanager
def slot(host: _Counted, control: TurnControl) -> Generator[None]:
    """Count a turn while the block runs."""
    held = Slot(host, control)
    try:
        yield
    finally:
        held.release()
