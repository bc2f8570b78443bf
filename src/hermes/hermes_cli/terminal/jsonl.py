"""A turn as JSON, one object a line and event; the shapes are described in docs/chat.md.

The shapes are a promise: keys are added, not renamed.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, assert_never

import orjson

from hermes.errors import HermesError
from hermes.events import (
    ApprovalRequested,
    ApprovalResolved,
    ReasoningDelta,
    Retrying,
    Steered,
    StepStarted,
    SubagentFinished,
    SubagentProgressed,
    SubagentStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnResult,
    TurnStarted,
)
from hermes.hermes_cli.terminal.output import Output


class JsonView:
    """Writes every event as one line of JSON."""

    tick = None

    def __init__(self, output: Output, notices: Output) -> None:
        self._output = output
        self._notices = notices
        self._remarks: list[str] = []

    def remark(self, line: str) -> None:
        """Keep a line for standard error: it is no event."""
        self._remarks.append(line)

    async def show(self, events: Sequence[TurnEvent]) -> None:
        """Write the events, flushed at once."""
        await self.beat()
        await self._output.write("".join(line(as_json(event)) for event in events))

    async def beat(self) -> None:
        """Write the remarks."""
        remarks, self._remarks = self._remarks, []
        await self._notices.write("".join(f"{remark}\n" for remark in remarks))

    async def close(self) -> None:
        """Write what is left to say; every event was a whole line."""
        await self.beat()


def line(value: dict[str, Any]) -> str:
    """Return one line of JSON; what has no JSON form is given as text."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode() + "\n"
    except orjson.JSONEncodeError:
        whole = {key: _valid(item) for key, item in value.items()}
        return orjson.dumps(whole, default=str, option=orjson.OPT_NON_STR_KEYS).decode() + "\n"


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value if value is None or isinstance(value, bool | int | float) else _valid(str(value))


def as_json(event: TurnEvent) -> dict[str, Any]:
    """Return an event as an object whose ``type`` is the event's kind."""
    return {"type": event.kind, **_fields(event)}


def _fields(event: TurnEvent) -> dict[str, Any]:
    match event:
        case TurnStarted():
            fields: dict[str, Any] = {"turn_id": event.turn_id, "session_id": event.session_id}
        case StepStarted():
            fields = {"number": event.number}
        case TextDelta() | ReasoningDelta() | Steered():
            fields = {"text": event.text}
        case Retrying():
            fields = {
                "attempt": event.attempt,
                "delay": event.delay,
                "endpoint": event.endpoint,
                "error": {"code": event.code, "message": event.message},
            }
        case ToolStarted():
            fields = {
                "call_id": event.call.id,
                "name": event.call.name,
                "arguments": dict(event.arguments),
            }
        case ToolFinished():
            fields = {
                "call_id": event.call.id,
                "name": event.call.name,
                "seconds": round(event.seconds, 3),
                "is_error": event.result.is_error,
                "text": event.result.text,
            }
        case ApprovalRequested() | ApprovalResolved():
            fields = _approval(event)
        case SubagentStarted() | SubagentProgressed() | SubagentFinished():
            fields = _subagent(event)
        case TurnFinished() | TurnFailed():
            fields = _result(event.result)
        case _:
            assert_never(event)
    return fields


def _subagent(event: SubagentStarted | SubagentProgressed | SubagentFinished) -> dict[str, Any]:
    fields = asdict(event)
    del fields["kind"]
    if isinstance(event, SubagentFinished):
        fields["seconds"] = round(event.seconds, 3)
    return fields


def _approval(event: ApprovalRequested | ApprovalResolved) -> dict[str, Any]:
    call = event.call
    named = {"approval_id": event.approval_id, "call_id": call.id, "name": call.name}
    if isinstance(event, ApprovalResolved):
        return {**named, "choice": event.choice, "by": event.by}
    return {
        **named,
        "reason": event.reason,
        "detail": event.detail,
        "choices": list(event.choices),
        "expires_at": event.expires_at,
    }


def error_object(error: HermesError | None) -> dict[str, str] | None:
    """Return an error as ``{"code", "message"}``."""
    return {"code": error.code, "message": error.message} if error is not None else None


def _result(result: TurnResult) -> dict[str, Any]:
    usage, tools = result.usage, result.tools
    return {
        "status": result.status,
        "text": result.text,
        "model": result.model,
        "steps": result.steps,
        "usage": {
            "input": usage.input,
            "cached_input": usage.cached_input,
            "output": usage.output,
            "reasoning": usage.reasoning,
        },
        "tools": {
            "attempted": tools.attempted,
            "succeeded": tools.succeeded,
            "failed": tools.failed,
        },
        "error": error_object(result.error),
    }
