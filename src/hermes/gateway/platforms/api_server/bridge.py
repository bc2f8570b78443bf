"""Between an agent and a stream writer: the turn's log as a queue, and how a turn ended.

The frames that a client sees are the writers' own.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermes.agent.event_log import EventLog
from hermes.errors import HermesError, TurnCancelled, TurnError
from hermes.events import TextDelta, ToolFinished, ToolStarted, TurnEvent
from hermes.messages import ToolCall, ToolResult, Usage


class StreamQueue(EventLog):
    """The log of one turn as a queue: text or events go in, ``None`` is the end."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0

    def put(self, item: TurnEvent | str | None) -> None:
        """Add text, an event, or the end."""
        if item is None:
            self.close()
        elif isinstance(item, str):
            self.emit(TextDelta(item))
        else:
            self.emit(item)

    def empty(self) -> bool:
        """Whether nothing is left to take."""
        return self._taken >= len(self) and not self.closed

    def get_nowait(self) -> TurnEvent | None:
        """Take the next event; ``None`` after the last one.

        Raises:
            IndexError: nothing is there yet.
        """
        if self._taken >= len(self) and self.closed:
            return None
        event = self.since(self._taken)[0]
        self._taken += 1
        return event


class Callbacks:
    """What an agent without an event sink calls; each call becomes an event of the stream.

    Tools whose names start with ``_`` are internal and make none, and neither does the end of a
    tool that never began.
    """

    def __init__(self, stream: StreamQueue) -> None:
        self._stream = stream
        self._open: dict[str, ToolCall] = {}

    def text(self, text: str | None) -> None:
        """Take the next words of the answer."""
        if text:
            self._stream.put(text)

    def tool_started(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> None:
        """Take the start of a tool."""
        if not name.startswith("_"):
            call = ToolCall(id=call_id, name=name, arguments="")
            self._open[call_id] = call
            self._stream.emit(ToolStarted(call=call, arguments=arguments))

    def tool_completed(
        self, call_id: str, name: str, arguments: Mapping[str, Any], result: Any
    ) -> None:
        """Take the end of a tool."""
        call = self._open.pop(call_id, None)
        if call is not None:
            outcome = ToolResult(call_id=call_id, name=name, text=str(result))
            self._stream.emit(ToolFinished(call=call, result=outcome, seconds=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a turn ended, as every projection tells it.

    ``finish_reason`` is ``stop``, ``length`` or ``error``; ``error`` is set unless the turn
    completed.
    """

    text: str
    finish_reason: str
    usage: Usage
    partial: bool = False
    error: HermesError | None = None
    tools: Mapping[str, int] | None = None
    session_id: str = ""

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return self.finish_reason == "error"

    def facts(self) -> dict[str, Any]:
        """Return the ``hermes`` object of an unfinished turn."""
        code = self.error.code if self.error is not None else None
        facts: dict[str, Any] = {
            "completed": False,
            "partial": self.partial,
            "failed": self.failed,
            "error_code": code or ("output_truncated" if self.finish_reason == "length" else None),
        }
        if self.tools is not None:
            facts["tools"] = dict(self.tools)
        return facts


def usage_of(counts: Mapping[str, int]) -> Usage:
    """Return token counts as our type."""
    return Usage(
        input=counts.get("input_tokens", 0),
        cached_input=counts.get("cached_tokens", 0),
        output=counts.get("output_tokens", 0),
        reasoning=counts.get("reasoning_tokens", 0),
    )


def ending(result: Mapping[str, Any], counts: Mapping[str, int]) -> Ending:
    """Return how the turn ended from what the agent returned."""
    text = str(result.get("final_response") or "")
    failed, partial = bool(result.get("failed")), bool(result.get("partial"))
    error = result.get("error")
    if error is not None and not isinstance(error, HermesError):
        error = TurnError(str(error), code=str(result.get("error_code") or "agent_incomplete"))
    reason = "error" if failed or (error and not partial and not text) else "stop"
    if partial and not failed:
        reason = "length" if text else "error"
    return Ending(
        text=text,
        finish_reason=reason,
        usage=usage_of(counts),
        partial=bool(text) and reason != "stop",
        error=error or (TurnError("The turn did not complete.") if reason == "error" else None),
        tools=result.get("tools"),
        session_id=str(result.get("session_id") or ""),
    )


def failure(error: BaseException) -> Ending:
    """Return the ending of a turn that raised instead of returning."""
    known = error if isinstance(error, HermesError) else None
    if isinstance(error, asyncio.CancelledError):
        known = TurnCancelled("The turn was stopped.")
    return Ending(
        text="",
        finish_reason="error",
        usage=Usage(),
        error=known or TurnError("The turn failed; the server's log says why."),
    )
