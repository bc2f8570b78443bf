"""When a failed model call is made again, where, and after how long. A decision, no action.

Calls that delivered content never come here.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hermes.errors import (
    EmptyAnswerError,
    ProviderConnectionError,
    ProviderError,
    ProviderProtocolError,
    ProviderStatusError,
    ProviderTimeoutError,
)

_BUSY = frozenset({"rate_limited", "overloaded"})
_FINAL = frozenset({"content_filter", "unencodable_request"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do: ``again`` at the same endpoint, the ``next`` endpoint, or ``stop``."""

    action: Literal["again", "next", "stop"]
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The rules, in seconds.

    ``attempts`` calls at most go to one endpoint; a silent one, which costs its whole limit
    each time, is given two. Where another endpoint stands ready, a busy one is given two
    and a silent one is left at once.

    A broken connection is tried again at once, the first time. Other waits double from ``base``
    up to ``ceiling``; a rate limit without a hint waits four times as long. ``Retry-After`` is
    honoured up to ``longest_wait``; a longer one means that the endpoint will not serve this
    turn. ``patience_with_fallback`` bounds every wait where another endpoint stands ready.
    ``chance`` gives numbers from 0 to 1 that spread the waits.
    """

    attempts: int = 3
    base: float = 0.5
    ceiling: float = 20.0
    longest_wait: float = 60.0
    patience_with_fallback: float = 5.0
    chance: Callable[[], float] = random.random

    def decide(self, error: ProviderError, *, tries: int, has_next: bool) -> Decision:
        """Judge a failure after ``tries`` calls at this endpoint."""
        if error.code in _FINAL:
            return Decision(action="stop")
        leave = Decision(action="next" if has_next and error.fail_over else "stop")
        if not error.retryable or tries >= self._attempts(error, has_next=has_next):
            return leave
        delay = self._delay(error, tries)
        longest = self.patience_with_fallback if has_next else self.longest_wait
        return leave if delay > longest else Decision(action="again", delay=delay)

    def _attempts(self, error: ProviderError, *, has_next: bool) -> int:
        if isinstance(error, ProviderTimeoutError):
            return 1 if has_next else min(2, self.attempts)
        return min(2, self.attempts) if has_next and error.code in _BUSY else self.attempts

    def _delay(self, error: ProviderError, tries: int) -> float:
        if isinstance(error, ProviderStatusError):
            if error.retry_after is not None:
                return error.retry_after
            if error.code == "rate_limited":
                return self._spread(self.base * 2.0 ** (tries + 1))
        elif tries == 1 and isinstance(
            error, ProviderConnectionError | ProviderProtocolError | EmptyAnswerError
        ):
            return 0.0
        return self._spread(self.base * 2.0 ** (tries - 1))

    def _spread(self, wait: float) -> float:
        """Take up to a quarter off, so that many callers do not come back together."""
        return min(self.ceiling, wait) * (1.0 - self.chance() / 4)
