"""The port to a tool: a description for the model and a call.

Approval, argument checks and output bounds are the toolbox's.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from hermes.events import TurnEvent
from hermes.messages import JsonObject, ToolResult, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of where it runs.

    ``workdir`` is the folder that relative paths start from; ``results`` is where outputs too
    long for the model are kept whole; ``environment`` is what commands see (no keys);
    ``progress`` takes a line for the person who waits; ``attended`` says whether somebody can
    answer an approval.
    """

    session_id: str
    turn_id: str
    call_id: str
    workdir: Path
    results: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    progress: Callable[[str], None] = lambda _line: None
    session_key: str = ""
    emit: Callable[[TurnEvent], None] = lambda _event: None
    attended: bool = False

    def for_call(self, call_id: str) -> "ToolContext":
        """Return the same context for one call."""
        return replace(self, call_id=call_id)


class Tool(Protocol):
    """Something the model may call."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        ...

    async def __call__(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Run with checked arguments.

        What goes wrong inside is a result with ``is_error``; an exception is a defect, which the
        toolbox turns into such a result. Cancelling the call ends what it started.
        """
        ...


Outcome: TypeAlias = str | JsonObject | ToolResult
"""What a tool's function may return: text, an object (see ``object_result``) or a whole result."""


class ToolFailure(Exception):  # noqa: N818 - it is an outcome for the model, not a defect
    """An expected failure inside a tool; its message is written for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A tool made of its description and an asynchronous function.

    The function may raise ``ToolFailure`` for what is expected to go wrong.
    """

    spec: ToolSpec
    function: Callable[[JsonObject, ToolContext], Awaitable[Outcome]]

    async def __call__(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Run the function and give its outcome as a result."""
        name = self.spec.name
        try:
            outcome = await self.function(arguments, context)
        except ToolFailure as failure:
            return ToolResult(call_id=context.call_id, name=name, text=str(failure), is_error=True)
        if isinstance(outcome, ToolResult):
            return outcome
        if isinstance(outcome, str):
            return ToolResult(call_id=context.call_id, name=name, text=outcome)
        return object_result(outcome, name=name, call_id=context.call_id)


def object_result(value: JsonObject, *, name: str, call_id: str) -> ToolResult:
    """Return an object as JSON text, with the truth about whether it tells of a failure.

    It does when ``exit_code`` or ``returncode`` is a number other than 0, ``success`` is false,
    ``is_error`` or ``isError`` is true, or ``error`` holds anything.
    """
    codes = (value.get("exit_code"), value.get("returncode"))
    failed = (
        any(isinstance(code, int) and code != 0 for code in codes)
        or value.get("success") is False
        or value.get("is_error") is True
        or value.get("isError") is True
        or bool(value.get("error"))
    )
    text = json.dumps(value, ensure_ascii=False, default=str)
    return ToolResult(call_id=call_id, name=name, text=text, is_error=failed)
