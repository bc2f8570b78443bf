"""The two operations a turn is made of, a model call and a tool call, as a port.

The turn loop decides nothing but on their results, so an implementation that records each
operation and plays it back fits without touching the loop.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from hermes.events import FinishReason, TurnEvent, TurnResult
from hermes.messages import JsonObject, Message, ModelRequest, ToolCall, ToolResult, ToolSpec, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What one model call gave: an assistant message, maybe without parts, and why it ended."""

    message: Message
    reason: FinishReason
    usage: Usage
    model: str


class Execution(Protocol):
    """How a turn reaches the model and its tools."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the model is told of."""
        ...

    async def model_call(
        self, request: ModelRequest, emit: Callable[[TurnEvent], None]
    ) -> ModelAnswer:
        """Make one model call; text, reasoning and retries are emitted as they come.

        Raises:
            ProviderError: no whole answer came; what was emitted before stays emitted.
        """
        ...

    async def parse(self, call: ToolCall) -> JsonObject | ToolResult:
        """Return the call's checked arguments, or the error result that answers it unrun."""
        ...

    async def tool_call(self, call: ToolCall, arguments: JsonObject) -> ToolResult:
        """Run a tool once; a failure is a result."""
        ...


class Conversation(Protocol):
    """Where a turn's history comes from and where the turn goes."""

    @property
    def is_stored(self) -> bool:
        """Whether ``commit`` has anything to do."""
        ...

    def open(self) -> AbstractAsyncContextManager[tuple[Message, ...]]:
        """Hold the conversation for one turn and give its messages, oldest first.

        Raises (on entry):
            SessionError: the history cannot be read.
        """
        ...

    async def keep(self, messages: Sequence[Message]) -> None:
        """Save the user's message and the turn so far against the end of this process.

        Called inside ``open``, each time with all of the turn, and never after ``commit``, which
        stores the turn itself. What was saved is no part of the conversation unless no ``commit``
        follows.

        Raises:
            SessionError: it was not saved.
        """
        ...

    async def commit(self, user: Message, result: TurnResult) -> None:
        """Store the user's message and the turn, whole or not at all; called inside ``open``.

        Raises:
            SessionError: nothing was stored.
        """
        ...
