"""A clock that stands still until a test moves it."""

from collections.abc import Callable


class _Timer:
    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Implements ``hermes.providers.clock.Clock``; ``sleep`` moves it too and keeps the waits."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []
        self._timers: list[_Timer] = []

    def now(self) -> float:
        return self.time

    def call_later(self, seconds: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(self.time + seconds, callback)
        self._timers.append(timer)
        return timer

    @property
    def pending(self) -> int:
        return sum(not timer.cancelled for timer in self._timers)

    def advance(self, seconds: float) -> None:
        end = self.time + seconds
        while True:
            due = [t for t in self._timers if not t.cancelled and t.due <= end]
            if not due:
                break
            timer = min(due, key=lambda t: t.due)
            self._timers.remove(timer)
            self.time = max(self.time, timer.due)
            timer.callback()
        self.time = end
        self._timers = [timer for timer in self._timers if not timer.cancelled]

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.advance(seconds)
