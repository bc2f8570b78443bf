"""Time for calls, and a deadline that moves while a stream is alive.

Tests give a clock of their own; nothing here knows what is waited for.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A callback that has not run yet."""

    def cancel(self) -> None:
        """Never run it."""
        ...


class Clock(Protocol):
    """Where a call takes its time from, in seconds."""

    def now(self) -> float:
        """Return the time since some fixed moment."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` on the event loop after ``seconds``."""
        ...


class LoopClock:
    """The real time of the running event loop."""

    def now(self) -> float:
        """Return the system's monotonic time."""
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """As the loop's own."""
        return asyncio.get_running_loop().call_later(seconds, callback)


class Watch:
    """Calls ``on_expiry`` when its limit has passed without an extension.

    Time while it is held does not count. Extending costs no timer: the one that is set looks
    again when it fires.
    """

    __slots__ = ("_clock", "_deadline", "_due", "_held", "_timer", "expired", "on_expiry")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timer: Timer | None = None
        self._deadline = 0.0
        self._due = 0.0
        self._held = False
        self.expired = False
        self.on_expiry: Callable[[], object] | None = None

    def limit(self, seconds: float) -> None:
        """Expire ``seconds`` from now, unless this is called again before."""
        self._held = False
        self._deadline = self._clock.now() + seconds
        if self._timer is None or self._due > self._deadline:
            self._set(seconds)

    def hold(self) -> None:
        """Stand still until the next ``limit``."""
        self._held = True

    def stop(self) -> None:
        """Never expire."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, seconds: float) -> None:
        self.stop()
        self._due = self._deadline
        self._timer = self._clock.call_later(seconds, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._held:
            return
        left = self._deadline - self._clock.now()
        if left > 0:
            self._set(left)
            return
        self.expired = True
        if self.on_expiry is not None:
            self.on_expiry()
