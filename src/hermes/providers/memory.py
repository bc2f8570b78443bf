"""What the process has learned of its endpoints, model by model.

It decides nothing: the chain reads and writes it. Nothing is stored beyond the process.
"""

import asyncio
from collections import OrderedDict
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeAlias

from hermes.errors import ProviderError, ProviderStatusError
from hermes.providers.registry import Endpoint

_MAX_STATES = 1024
_FAILURES_TO_REST = 3
_FIRST_REST = 30.0
_LONGEST_REST = 300.0
_LONGEST_LIMIT = 600.0

_Key: TypeAlias = tuple[object, ...]


class EndpointState:
    """One model at one endpoint.

    ``quirks`` grow with what it refused. ``gate`` bounds its calls at a time. ``found_model`` is
    the model that it was found to offer when none was named.

    An endpoint whose calls failed again and again, or which asked to be left alone, *rests*: it
    comes after those that do not, and is never refused. Rest ends by itself, and with the first
    content.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.quirks = endpoint.quirks
        self.found_model = ""
        self._failures = 0
        self._rests_until = 0.0
        limit = endpoint.limits.max_concurrent
        self.gate: AbstractAsyncContextManager[object] = (
            asyncio.Semaphore(limit) if limit else nullcontext()
        )

    def rests(self, now: float) -> bool:
        """Whether another endpoint should be asked first."""
        return now < self._rests_until

    def delivered(self) -> None:
        """Content came: it is well."""
        self._failures = 0
        self._rests_until = 0.0

    def gave_up(self, error: ProviderError, now: float) -> None:
        """A call failed for good with ``error``."""
        if isinstance(error, ProviderStatusError) and error.code == "rate_limited":
            if error.retry_after is not None:
                self._rests_until = now + min(error.retry_after, _LONGEST_LIMIT)
        elif error.retryable:
            self._failures += 1
            if self._failures >= _FAILURES_TO_REST:
                rest = _FIRST_REST * 2.0 ** (self._failures - _FAILURES_TO_REST)
                self._rests_until = now + min(rest, _LONGEST_REST)
        if error.code == "not_found":
            self.found_model = ""


class EndpointMemory:
    """The states of all endpoints; the least recently used are forgotten first."""

    def __init__(self) -> None:
        self._states: OrderedDict[_Key, EndpointState] = OrderedDict()

    def state(self, endpoint: Endpoint, model: str) -> EndpointState:
        """Return what is known of a model at an endpoint."""
        key: _Key = (
            endpoint.protocol,
            endpoint.base_url,
            endpoint.api_key,
            endpoint.quirks,
            endpoint.limits.max_concurrent,
            model,
        )
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = EndpointState(endpoint)
            if len(self._states) > _MAX_STATES:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(key)
        return state
