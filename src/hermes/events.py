"""What happens while a turn runs: a provider's deltas and the turn's events.

Events are facts, not frames; how a client sees them is for the projections to say.

Order: ``TurnStarted`` first; then for each step ``StepStarted``, any mix of ``TextDelta`` and
``ReasoningDelta``, then ``ToolStarted`` and ``ToolFinished`` in pairs that share a call id; the
approvals and subagents of a call stand between the two, in pairs of their own ids;
``Retrying`` may stand before a step's first delta only. Exactly one terminal event
(``TurnFinished`` or ``TurnFailed``) comes last. ``TextDelta`` texts of all steps joined are the
answer as the client saw it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from hermes.errors import HermesError
from hermes.messages import Message, ToolCall, ToolResult, Usage

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
"""Why a model stopped."""

TurnStatus: TypeAlias = Literal["completed", "truncated", "failed", "cancelled"]
"""How a turn ended; ``truncated`` has an answer that an output limit cut."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next words of the answer."""

    text: str
    kind: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next words of the model's reasoning; ``signature`` and ``opaque`` as in ReasoningPart."""

    text: str
    signature: str = ""
    opaque: str = ""
    kind: Literal["reasoning_delta"] = "reasoning_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A piece of a tool call. Pieces with one ``index`` belong together; ``id`` and ``name`` come
    whole, once; ``arguments`` pieces are joined.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    kind: Literal["tool_call_delta"] = "tool_call_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The model's end of a step; always the last delta, exactly once.

    ``model`` and ``origin`` name the model and the endpoint that answered; the provider fills
    them in. ``origin`` is what the answer's ``ReasoningPart`` is bound to.
    """

    reason: FinishReason
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    origin: str = ""
    kind: Literal["finish"] = "finish"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """A model call failed before it delivered content and is made again after ``delay`` seconds.

    ``attempt`` counts the calls made so far; ``endpoint`` names where the next one goes.
    """

    attempt: int
    delay: float
    code: str
    message: str
    endpoint: str = ""
    kind: Literal["retrying"] = "retrying"


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Finish | Retrying
"""What a provider yields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcomes:
    """Counts of a turn's tool calls; those neither succeeded nor failed were cancelled."""

    attempted: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended.

    ``text`` is the answer as streamed. ``messages`` are what the turn adds to the conversation
    after the user's input: assistant and tool messages, every call paired with a result; they are
    valid whatever the status. ``model`` is the model that answered last. ``pending_steer`` is
    steering text that came after the last tool boundary.
    """

    status: TurnStatus
    text: str
    messages: tuple[Message, ...]
    usage: Usage
    steps: int = 0
    tools: ToolOutcomes = field(default_factory=ToolOutcomes)
    error: HermesError | None = None
    model: str = ""
    pending_steer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A turn begins; always the first event."""

    turn_id: str
    session_id: str
    kind: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A model call begins; ``number`` counts from 1."""

    number: int
    kind: Literal["step_started"] = "step_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A tool begins; ``arguments`` are parsed and not redacted."""

    call: ToolCall
    arguments: Mapping[str, Any]
    kind: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool ended after ``seconds``."""

    call: ToolCall
    result: ToolResult
    seconds: float
    kind: Literal["tool_finished"] = "tool_finished"


ApprovalChoice: TypeAlias = Literal["once", "session", "always", "deny"]
"""What a person may answer to a request for approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A call waits for a person's decision, until ``expires_at`` (Unix seconds).

    ``reason`` says what is dangerous and ``detail`` what is about to happen; both are redacted
    and safe to show. ``choices`` are the answers that are taken.
    """

    approval_id: str
    call: ToolCall
    reason: str
    detail: str
    choices: tuple[ApprovalChoice, ...]
    expires_at: float
    kind: Literal["approval_requested"] = "approval_requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved:
    """The decision on an approval; ``by`` is the surface that made it, or why nobody could."""

    approval_id: str
    call: ToolCall
    choice: ApprovalChoice
    by: str
    kind: Literal["approval_resolved"] = "approval_resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentStarted:
    """A call handed work to a sub-agent, whose own session is ``session_id``."""

    subagent_id: str
    call_id: str
    goal: str
    session_id: str
    model: str
    depth: int
    kind: Literal["subagent_started"] = "subagent_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentProgressed:
    """A sub-agent does something; ``line`` is short and redacted."""

    subagent_id: str
    line: str
    kind: Literal["subagent_progressed"] = "subagent_progressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentFinished:
    """A sub-agent ended; ``summary`` is what it hands back."""

    subagent_id: str
    status: TurnStatus
    summary: str
    usage: Usage
    seconds: float
    kind: Literal["subagent_finished"] = "subagent_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """Text that the user added while the turn ran entered the conversation."""

    text: str
    kind: Literal["steered"] = "steered"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """The end of a turn with an answer (status completed or truncated)."""

    result: TurnResult
    kind: Literal["turn_finished"] = "turn_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """The end of a turn without one (status failed or cancelled); ``result.error`` says why."""

    result: TurnResult
    kind: Literal["turn_failed"] = "turn_failed"


TurnEvent: TypeAlias = (
    TurnStarted
    | StepStarted
    | TextDelta
    | ReasoningDelta
    | Retrying
    | ToolStarted
    | ToolFinished
    | ApprovalRequested
    | ApprovalResolved
    | SubagentStarted
    | SubagentProgressed
    | SubagentFinished
    | Steered
    | TurnFinished
    | TurnFailed
)


class EventSink(Protocol):
    """Where a turn's events go."""

    def emit(self, event: TurnEvent) -> None:
        """Take one event: synchronous, thread safe, never blocks, never raises."""
        ...
