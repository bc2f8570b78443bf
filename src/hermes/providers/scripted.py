"""A provider that answers as it is told, for tests of whatever speaks to a model.

No network, no retries and no judgement of the request: it is only kept.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

from hermes.errors import HermesError
from hermes.events import (
    Delta,
    Finish,
    FinishReason,
    TextDelta,
    ToolCallDelta,
)
from hermes.messages import ModelRequest, ToolCall, Usage

Piece: TypeAlias = str | Delta | ToolCall | HermesError | asyncio.Event
"""What an answer is made of: words, any delta, a whole tool call, an error to raise, an event to
wait for."""

Script: TypeAlias = str | HermesError | Iterable[Piece]
"""One answer: words, an error, or pieces in order. A ``Finish`` is added where none is."""

Step: TypeAlias = Script | Callable[[ModelRequest], Script]
"""One answer, or what makes it from the request."""


class ScriptedProvider:
    """A ``Provider`` that gives its ``steps`` in order, one a call.

    ``requests`` are the calls so far; ``closed`` counts those that were left before their end.
    A call beyond the last step fails the test with an ``AssertionError``, unless ``default``
    makes its answer.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        default: Step | None = None,
        model: str = "scripted",
        usage: Usage = Usage(input=10, output=5),  # noqa: B008 - immutable
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.released = False
        self._steps = deque(steps)
        self._default = default
        self._model = model
        self._usage = usage

    @property
    def remaining(self) -> int:
        """How many steps were not asked for yet."""
        return len(self._steps)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Delta]]:
        """Give the next step's deltas.

        Raises:
            HermesError: the script holds it.
        """
        self.requests.append(request)
        step = self._steps.popleft() if self._steps else self._default
        if step is None:
            raise AssertionError(f"call {len(self.requests)} was not scripted")
        script = step(request) if callable(step) else step
        async with aclosing(self._play(_pieces(script))) as deltas:
            yield deltas

    async def aclose(self) -> None:
        """Note that the provider was released."""
        self.released = True

    async def _play(self, pieces: Iterable[Piece]) -> AsyncGenerator[Delta]:
        reason: FinishReason = "stop"
        whole = False
        calls = 0
        try:
            for piece in pieces:
                if isinstance(piece, HermesError):
                    whole = True
                    raise piece
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                    continue
                delta = self._delta(piece, calls)
                if isinstance(delta, ToolCallDelta):
                    reason = "tool_calls"
                    calls = max(calls, delta.index + 1)
                if isinstance(delta, Finish):
                    whole = True
                    yield delta
                    return
                yield delta
            whole = True
            yield Finish(reason=reason, usage=self._usage, model=self._model, origin="scripted")
        finally:
            self.closed += not whole

    def _delta(self, piece: str | Delta | ToolCall, calls: int) -> Delta:
        if isinstance(piece, str):
            return TextDelta(piece)
        if isinstance(piece, ToolCall):
            return ToolCallDelta(
                index=calls, id=piece.id, name=piece.name, arguments=piece.arguments
            )
        return piece


def _pieces(script: Script) -> Iterable[Piece]:
    return (script,) if isinstance(script, str | HermesError) else script


__all__ = ["Piece", "Script", "ScriptedProvider", "Step"]
