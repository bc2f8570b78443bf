"""The port to a tool: a description for the model and a call.

Approval, argument checks and output bounds are the toolbox's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hermes.messages import JsonObject, ToolResult, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of where it runs.

    ``workdir`` is the folder that relative paths start from; ``results`` is where outputs too
    long for the model are kept whole; ``environment`` is what commands see (no keys);
    ``progress`` takes a line for the person who waits.
    """

    session_id: str
    turn_id: str
    call_id: str
    workdir: Path
    results: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    progress: Callable[[str], None] = lambda _line: None


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
