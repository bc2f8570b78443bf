"""Operations made directly: a model call on a provider, a tool call on a toolbox.

Retries before the first content are the provider's; what follows from an answer is the turn's.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from hermes.agent.execution import ModelAnswer
from hermes.errors import ProviderError
from hermes.events import Delta, ReasoningDelta, Retrying, TextDelta, TurnEvent
from hermes.messages import JsonObject, ModelRequest, ToolCall, ToolResult, ToolSpec
from hermes.providers.base import Provider
from hermes.providers.collect import Collector
from hermes.tools.approval import Gate
from hermes.tools.base import ToolContext
from hermes.tools.toolbox import Toolbox
from hermes.wire.think_tags import ThinkFilter

_log = logging.getLogger(__name__)

_REPEATS = 2
"""How often a call is made again whose stream broke before anything was emitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectExecution:
    """The ``Execution`` that does each operation when it is asked for.

    With ``live`` false nobody reads along: text is emitted once a call is whole, and a call that
    breaks in the middle is made again. ``gate`` is asked before each tool call.
    """

    provider: Provider
    toolbox: Toolbox
    context: ToolContext
    live: bool = True
    gate: Gate | None = None

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The toolbox's tools."""
        return self.toolbox.specs

    async def model_call(
        self, request: ModelRequest, emit: Callable[[TurnEvent], None]
    ) -> ModelAnswer:
        """Make one model call.

        Raises:
            ProviderError: as the provider's ``stream``.
        """
        for attempt in range(1, _REPEATS + 2):
            call = _Call(emit, live=self.live)
            try:
                return await call.run(self.provider, request)
            except ProviderError as error:
                if not (error.retryable and call.received and not call.emitted):
                    raise
                if attempt > _REPEATS:
                    raise
                _log.warning("model call broke off (%s), making it again", error.code)
                emit(Retrying(attempt=attempt, delay=0.0, code=error.code, message=error.message))
        raise AssertionError("unreachable")

    async def parse(self, call: ToolCall) -> JsonObject | ToolResult:
        """Return checked arguments or an error result."""
        await self.toolbox.prepare()
        return self.toolbox.parse(call)

    async def tool_call(self, call: ToolCall, arguments: JsonObject) -> ToolResult:
        """Run one tool, unless the gate answers in its place."""
        context = self.context.for_call(call.id)
        if self.gate is not None:
            refused = await self.gate.check(call, arguments, context)
            if refused is not None:
                return refused
        return await self.toolbox.run(call, context, arguments=arguments)


class _Call:
    """One attempt at a model call."""

    __slots__ = ("_collector", "_emit", "_held", "_live", "_think", "emitted", "received")

    def __init__(self, emit: Callable[[TurnEvent], None], *, live: bool) -> None:
        self._collector = Collector()
        self._think = ThinkFilter()
        self._emit = emit
        self._live = live
        self._held: list[TextDelta | ReasoningDelta] = []
        self.emitted = False
        self.received = False

    async def run(self, provider: Provider, request: ModelRequest) -> ModelAnswer:
        async with provider.stream(request) as deltas:
            async for delta in deltas:
                self._take(delta)
        for piece in self._think.finish():
            self._show(piece)
        for piece in self._held:
            self._emit(piece)
        answer = self._collector.answer()
        return ModelAnswer(
            message=answer.message, reason=answer.reason, usage=answer.usage, model=answer.model
        )

    def _take(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            for piece in self._think.feed(delta.text):
                self._show(piece)
        elif isinstance(delta, ReasoningDelta):
            self._show(delta)
        elif isinstance(delta, Retrying):
            self._emit(delta)
            return
        else:
            self._collector.add(delta)
        self.received = True

    def _show(self, delta: TextDelta | ReasoningDelta) -> None:
        self._collector.add(delta)
        if self._live:
            self.emitted = True
            self._emit(delta)
        else:
            self._held.append(delta)
