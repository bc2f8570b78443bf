"""Several endpoints behind one provider: retries, learning from refusals, ordered fallbacks.

One physical call is ``call``'s; whether a failure is worth another try is ``retry``'s.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import replace

from hermes.errors import ProviderError, ProviderStatusError, ProviderTimeoutError
from hermes.events import Delta, Retrying
from hermes.messages import ModelRequest
from hermes.providers.call import Call
from hermes.providers.catalogue import list_models
from hermes.providers.http import Transport
from hermes.providers.registry import Endpoint
from hermes.providers.retry import RetryPolicy
from hermes.wire.quirks import learn

_log = logging.getLogger(__name__)

_MAX_LESSONS = 8
_STALLS_TO_REST = 5
_REST = 30.0
"""Seconds for which an endpoint that stalled again and again comes after its fallbacks."""


class _Slot:
    """An endpoint with what this process has learned of it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.quirks = endpoint.quirks
        self._stalls = 0
        self._rests_until = 0.0
        limit = endpoint.limits.max_concurrent
        self.gate: AbstractAsyncContextManager[object] = (
            asyncio.Semaphore(limit) if limit else nullcontext()
        )

    def rests(self, now: float) -> bool:
        return now < self._rests_until

    def learned(self, error: ProviderError) -> bool:
        """Whether the refusal taught something that makes another try worth it."""
        if not isinstance(error, ProviderStatusError):
            return False
        lesson = learn(self.quirks, error)
        if lesson is None:
            return False
        _log.info("endpoint %s: learned from %s", self.endpoint.name, error.code)
        self.quirks = lesson
        return True

    def failed(self, error: ProviderError, now: float) -> None:
        if isinstance(error, ProviderTimeoutError):
            self._stalls += 1
            if self._stalls >= _STALLS_TO_REST:
                self._rests_until = now + _REST
                self._stalls = 0

    def delivered(self) -> None:
        self._stalls = 0
        self._rests_until = 0.0


class ProviderChain:
    """A ``Provider`` over endpoints in order of preference.

    A call that fails before it has delivered anything is made again or elsewhere, as the policy
    says, each time on a new connection, and announced by a ``Retrying`` delta. After the first
    delta a failure goes out as it is: nothing is ever delivered twice.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        transport: Transport,
        *,
        policy: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._slots = [_Slot(endpoint) for endpoint in endpoints]
        self._transport = transport
        self._policy = policy or RetryPolicy()
        self._sleep = sleep

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Delta]]:
        """Make one model call at the first endpoint that answers.

        Raises:
            ProviderError: of the last endpoint that was tried.
        """
        async with aclosing(self._deltas(request)) as deltas:
            yield deltas

    async def aclose(self) -> None:
        """Release nothing: the transport belongs to whoever opened it."""

    def _candidates(self) -> list[_Slot]:
        now = asyncio.get_running_loop().time()
        ready = [slot for slot in self._slots if not slot.rests(now)]
        return ready + [slot for slot in self._slots if slot.rests(now)]

    async def _deltas(self, request: ModelRequest) -> AsyncGenerator[Delta]:
        candidates = self._candidates()
        total = 0
        for number, slot in enumerate(candidates):
            following = candidates[number + 1] if number + 1 < len(candidates) else None
            tries = lessons = 0
            while True:
                total += 1
                tries += 1
                delivered = False
                try:
                    async with aclosing(self._call(slot, request, total, tries)) as deltas:
                        async for delta in deltas:
                            delivered = True
                            yield delta
                    slot.delivered()
                    return
                except ProviderError as error:
                    if delivered:
                        raise
                    failure = error
                slot.failed(failure, asyncio.get_running_loop().time())
                if lessons < _MAX_LESSONS and slot.learned(failure):
                    lessons += 1
                    tries -= 1
                    continue
                decision = self._policy.decide(failure, tries=tries, has_next=following is not None)
                if decision.action == "stop":
                    raise failure
                goal = slot if decision.action == "again" or following is None else following
                yield _notice(failure, total, decision.delay, goal)
                if decision.action == "next":
                    break
                await self._sleep(decision.delay)

    async def _call(
        self, slot: _Slot, request: ModelRequest, total: int, tries: int
    ) -> AsyncGenerator[Delta]:
        if slot is not self._slots[0]:
            # The model was asked of the first endpoint; a fallback answers with its own.
            request = replace(request, model="")
        async with slot.gate:
            if not (request.model or slot.endpoint.model):
                request = replace(request, model=await self._first_model(slot.endpoint))
            call = Call(
                self._transport,
                slot.endpoint,
                slot.quirks,
                request,
                fresh=total > 1,
                attempt=f"{tries}/{self._policy.attempts}",
            )
            async with call.stream() as deltas:
                async for delta in deltas:
                    yield delta

    async def _first_model(self, endpoint: Endpoint) -> str:
        models = await list_models(self._transport, endpoint)
        if not models:
            raise ProviderStatusError(
                f"{endpoint.name} lists no model; load one, or set model.default.",
                status=404,
                code="not_found",
            )
        return models[0]


def _notice(failure: ProviderError, attempt: int, delay: float, goal: _Slot) -> Retrying:
    return Retrying(
        attempt=attempt,
        delay=delay,
        code=failure.code,
        message=failure.message,
        endpoint=goal.endpoint.name,
    )
