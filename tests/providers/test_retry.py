"""The decision after a failure, as a table."""

import pytest

from hermes.errors import (
    EmptyAnswerError,
    ProviderConnectionError,
    ProviderError,
    ProviderProtocolError,
    ProviderStatusError,
    ProviderTimeoutError,
)
from hermes.providers.retry import Decision, RetryPolicy

POLICY = RetryPolicy(chance=lambda: 0.0)
STOP = Decision(action="stop")
NEXT = Decision(action="next")


def again(delay: float) -> Decision:
    return Decision(action="again", delay=delay)


def status(number: int, code: str, *, retryable: bool = True, after: float | None = None):
    return ProviderStatusError(
        "x", status=number, code=code, retryable=retryable, retry_after=after
    )


BUSY = status(529, "overloaded")
LIMITED = status(429, "rate_limited")


@pytest.mark.parametrize(
    ("error", "tries", "alone", "with_fallback"),
    [
        (ProviderConnectionError("x"), 1, again(0.0), again(0.0)),
        (ProviderConnectionError("x"), 2, again(1.0), again(1.0)),
        (ProviderConnectionError("x"), 3, STOP, NEXT),
        (ProviderProtocolError("x"), 1, again(0.0), again(0.0)),
        (EmptyAnswerError("x"), 1, again(0.0), again(0.0)),
        (ProviderTimeoutError("x"), 1, again(0.5), NEXT),
        (ProviderTimeoutError("x"), 2, STOP, NEXT),
        (status(500, "provider_server"), 1, again(0.5), again(0.5)),
        (status(500, "provider_server"), 2, again(1.0), again(1.0)),
        (status(500, "provider_server"), 3, STOP, NEXT),
        (BUSY, 1, again(0.5), again(0.5)),
        (BUSY, 2, again(1.0), NEXT),
        (LIMITED, 1, again(2.0), again(2.0)),
        (LIMITED, 2, again(4.0), NEXT),
        (status(429, "rate_limited", after=3.0), 1, again(3.0), again(3.0)),
        (status(429, "rate_limited", after=30.0), 1, again(30.0), NEXT),
        (status(429, "rate_limited", after=61.0), 1, STOP, NEXT),
        (status(429, "rate_limited", after=86400.0), 1, STOP, NEXT),
        (status(503, "overloaded", after=2.0), 1, again(2.0), again(2.0)),
        (status(401, "authentication", retryable=False), 1, STOP, NEXT),
        (status(429, "quota_exhausted", retryable=False), 1, STOP, NEXT),
        (status(400, "provider_request", retryable=False), 1, STOP, NEXT),
        (status(400, "content_filter", retryable=False), 1, STOP, STOP),
    ],
)
def test_each_kind_of_failure_has_its_answer(
    error: ProviderError, tries: int, alone: Decision, with_fallback: Decision
) -> None:
    assert POLICY.decide(error, tries=tries, has_next=False) == alone
    assert POLICY.decide(error, tries=tries, has_next=True) == with_fallback


def test_waits_double_up_to_a_ceiling() -> None:
    patient = RetryPolicy(attempts=12, chance=lambda: 0.0)
    error = status(500, "provider_server")
    waits = [patient.decide(error, tries=n, has_next=False).delay for n in range(1, 10)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0, 20.0]


def test_chance_takes_off_a_quarter_at_most() -> None:
    hasty = RetryPolicy(chance=lambda: 1.0)
    assert hasty.decide(BUSY, tries=1, has_next=False).delay == 0.375


def test_one_attempt_means_no_retry() -> None:
    once = RetryPolicy(attempts=1)
    for error in (ProviderConnectionError("x"), ProviderTimeoutError("x"), BUSY, LIMITED):
        assert once.decide(error, tries=1, has_next=False) == STOP
        assert once.decide(error, tries=1, has_next=True) == NEXT


def test_an_error_that_no_other_endpoint_could_avoid_stops() -> None:
    error = ProviderProtocolError("x")
    error.retryable = error.fail_over = False
    assert POLICY.decide(error, tries=1, has_next=True) == STOP
