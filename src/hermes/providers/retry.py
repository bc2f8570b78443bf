"""When a failed model call is made again, where, and after how long. A decision, no action.

Calls that delivered content never come here.
"""

import random
from dataclasses import dataclass
from typing import Literal

from hermes.errors import ProviderError, ProviderStatusError

_OVERLOADED = frozenset({"overloaded"})
_ELSEWHERE = frozenset({"rate_limited", "overloaded"})
_FINAL = frozenset({"context_length_exceeded", "content_filter", "unencodable_request"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do: ``again`` at the same endpoint, the ``next`` endpoint, or ``stop``."""

    action: Literal["again", "next", "stop"]
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The rules, in seconds.

    ``attempts`` calls at most go to one endpoint. Waits double from ``base`` up to ``ceiling``
    with up to a quarter taken off by chance. A ``Retry-After`` is honoured up to
    ``longest_wait``; a longer one means that the endpoint will not serve this turn.
    """

    attempts: int = 3
    base: float = 0.5
    ceiling: float = 20.0
    longest_wait: float = 60.0
    patience_with_fallback: float = 5.0

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
        # Another endpoint is ready: one quick try more is all that a busy one is worth.
        return min(2, self.attempts) if has_next and error.code in _ELSEWHERE else self.attempts

    def _delay(self, error: ProviderError, tries: int) -> float:
        if isinstance(error, ProviderStatusError) and error.retry_after is not None:
            return max(0.0, error.retry_after)
        wait = min(self.ceiling, self.base * 2.0 ** (tries - 1))
        return wait * random.uniform(0.75, 1.0)  # noqa: S311 - spread, not secrecy
