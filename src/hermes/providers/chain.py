"""Several endpoints behind one provider: retries, learning from refusals, ordered fallbacks.

One physical call is ``call``'s; whether a failure is worth another try is ``retry``'s.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from hermes.errors import ProviderError, ProviderStatusError
from hermes.events import Delta, Retrying
from hermes.messages import ModelRequest
from hermes.providers.call import Attempt, Call
from hermes.providers.catalogue import list_models
from hermes.providers.clock import Clock, LoopClock
from hermes.providers.http import Transport
from hermes.providers.memory import EndpointState
from hermes.providers.registry import Endpoint
from hermes.providers.retry import Decision, RetryPolicy
from hermes.wire.quirks import Quirks, learn

_log = logging.getLogger(__name__)

_MAX_LESSONS = 8


@dataclass(slots=True, kw_only=True)
class _Leg:
    """One endpoint's part in one call of the chain."""

    endpoint: Endpoint
    request: ModelRequest
    state: EndpointState
    quirks: Quirks = field(init=False)
    tries: int = 0
    lessons: int = 0
    delivered: bool = False

    def __post_init__(self) -> None:
        self.quirks = self.state.quirks

    def learned(self, error: ProviderError) -> bool:
        """Whether the refusal taught something that makes another try worth it."""
        if not isinstance(error, ProviderStatusError) or self.lessons >= _MAX_LESSONS:
            return False
        lesson = learn(self.quirks, error)
        if lesson is None:
            return False
        self.lessons += 1
        self.quirks = lesson
        if error.code != "invalid_signature":
            # That one is about this conversation; the rest holds for the endpoint and model.
            self.state.quirks = lesson
        name = self.endpoint.name
        _log.info("endpoint %s: learned from %s %s", name, error.code, error.parameter)
        return True


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
        clock: Clock | None = None,
    ) -> None:
        self._endpoints = tuple(endpoints)
        self._transport = transport
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._clock = clock or LoopClock()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Delta]]:
        """Make one model call at the first endpoint that answers.

        Raises:
            ProviderError: of the endpoint that was tried last; its message tells of all.
        """
        async with aclosing(self._deltas(request)) as deltas:
            yield deltas

    async def aclose(self) -> None:
        """Release nothing: the transport belongs to whoever opened it."""

    def _legs(self, request: ModelRequest) -> list[_Leg]:
        """The endpoints in the order to try them: those that rest come last."""
        legs: list[_Leg] = []
        for number, endpoint in enumerate(self._endpoints):
            # The model was asked of the first endpoint; a fallback answers with its own.
            model = endpoint.model or request.model if number else request.model or endpoint.model
            state = self._transport.memory.state(endpoint, model)
            asked = request if model == request.model else replace(request, model=model)
            legs.append(_Leg(endpoint=endpoint, request=asked, state=state))
        if len(legs) > 1:
            now = self._clock.now()
            legs.sort(key=lambda leg: leg.state.rests(now))
        return legs

    async def _deltas(self, request: ModelRequest) -> AsyncGenerator[Delta]:
        legs = self._legs(request)
        failures: list[tuple[str, ProviderError]] = []
        number = total = 0
        while True:
            leg = legs[number]
            total += 1
            try:
                async with aclosing(self._call(leg, fresh=total > 1)) as deltas:
                    async for delta in deltas:
                        yield delta
                return
            except ProviderError as error:
                if leg.delivered:
                    raise
                failure = error
            if leg.learned(failure):
                continue
            following = _following(legs, number, failure)
            decision = self._decide(leg, failure, has_next=following > number)
            if decision.action != "again":
                failures.append((leg.endpoint.name, failure))
            if decision.action == "stop":
                raise _told(failures)
            number = following if decision.action == "next" else number
            yield _notice(failure, total, decision.delay, legs[number].endpoint)
            await self._sleep(decision.delay)

    def _decide(self, leg: _Leg, failure: ProviderError, *, has_next: bool) -> Decision:
        leg.tries += 1
        decision = self._policy.decide(failure, tries=leg.tries, has_next=has_next)
        if decision.action != "again":
            leg.state.gave_up(failure, self._clock.now())
        return decision

    async def _call(self, leg: _Leg, *, fresh: bool) -> AsyncGenerator[Delta]:
        async with leg.state.gate:
            request = leg.request
            if not request.model:
                request = replace(request, model=await self._found_model(leg))
            attempt = Attempt(leg.tries + 1, self._policy.attempts, fresh)
            call = Call(
                self._transport,
                leg.endpoint,
                leg.quirks,
                request,
                attempt=attempt,
                clock=self._clock,
            )
            async with aclosing(call.deltas()) as deltas:
                async for delta in deltas:
                    if not leg.delivered:
                        leg.delivered = True
                        leg.state.delivered()
                    yield delta

    async def _found_model(self, leg: _Leg) -> str:
        """The first model that the endpoint lists, asked for once."""
        if not leg.state.found_model:
            models = await list_models(self._transport, leg.endpoint)
            if not models:
                raise ProviderStatusError(
                    f"{leg.endpoint.name} lists no model; load one, or set model.default.",
                    status=404,
                    code="not_found",
                )
            leg.state.found_model = models[0]
        return leg.state.found_model


def _following(legs: Sequence[_Leg], number: int, failure: ProviderError) -> int:
    """The place of the endpoint to try after this one, or ``number`` if there is none.

    A conversation that is too long goes only to an endpoint known to take more.
    """
    for place in range(number + 1, len(legs)):
        more = legs[place].endpoint.context_length > legs[number].endpoint.context_length > 0
        if more or failure.code != "context_length_exceeded":
            return place
    return number


def _told(failures: Sequence[tuple[str, ProviderError]]) -> ProviderError:
    """Return the last failure, its message telling of the others too."""
    failure = failures[-1][1]
    if len(failures) > 1:
        causes = "; ".join(f"{name}: {error.message}" for name, error in failures)
        failure.args = (f"No endpoint gave an answer. {causes}",)
    return failure


def _notice(failure: ProviderError, attempt: int, delay: float, goal: Endpoint) -> Retrying:
    return Retrying(
        attempt=attempt,
        delay=delay,
        code=failure.code,
        message=failure.message,
        endpoint=goal.name,
    )
