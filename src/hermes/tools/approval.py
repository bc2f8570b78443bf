"""Approvals that wait for a person: asked by a tool call, answered by any surface.

Which calls need one is not decided here, and nothing is remembered beyond the answer.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hermes.errors import ToolboxError
from hermes.events import ApprovalChoice, ApprovalRequested, ApprovalResolved, TurnEvent
from hermes.ids import new_approval_id
from hermes.messages import JsonObject, ToolCall, ToolResult
from hermes.tools.base import ToolContext

_log = logging.getLogger(__name__)

CHOICES: tuple[ApprovalChoice, ...] = ("once", "session", "always", "deny")
"""The answers that a request takes unless it says otherwise."""

TIME_LIMIT = 300.0
"""Seconds that a person has to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided, and the surface that did it or why nobody could."""

    choice: ApprovalChoice
    by: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    session_id: str
    request: ApprovalRequested
    answer: asyncio.Future[Decision]


class ApprovalBroker:
    """Pending approvals by id. Belongs to one event loop; call it from there only."""

    def __init__(self, *, time_limit: float = TIME_LIMIT) -> None:
        """Wait ``time_limit`` seconds for each answer, then deny."""
        self._time_limit = time_limit
        self._waiting: dict[str, _Waiting] = {}

    def pending(self, session_id: str) -> tuple[ApprovalRequested, ...]:
        """Return what a session waits for, oldest first."""
        return tuple(
            waiting.request
            for waiting in self._waiting.values()
            if waiting.session_id == session_id and not waiting.answer.done()
        )

    async def ask(
        self,
        call: ToolCall,
        *,
        session_id: str,
        reason: str,
        detail: str,
        emit: Callable[[TurnEvent], None],
        choices: tuple[ApprovalChoice, ...] = CHOICES,
    ) -> Decision:
        """Emit a request and wait for its answer; no answer in time is a denial.

        ``reason`` and ``detail`` are shown as they are, so they come redacted. A cancelled wait
        is resolved as a denial, too, so that no surface keeps offering it.
        """
        request = ApprovalRequested(
            approval_id=new_approval_id(),
            call=call,
            reason=reason,
            detail=detail,
            choices=choices,
            expires_at=time.time() + self._time_limit,
        )
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[request.approval_id] = _Waiting(session_id, request, answer)
        decision = Decision(choice="deny", by="cancelled")
        emit(request)
        try:
            async with asyncio.timeout(self._time_limit):
                decision = await answer
        except TimeoutError:
            decision = Decision(choice="deny", by="time limit")
        finally:
            del self._waiting[request.approval_id]
            _log.info(
                "approval %s: %s by %s (%s)",
                request.approval_id,
                decision.choice,
                decision.by,
                reason,
            )
            emit(
                ApprovalResolved(
                    approval_id=request.approval_id,
                    call=call,
                    choice=decision.choice,
                    by=decision.by,
                )
            )
        return decision

    def resolve(self, approval_id: str, choice: ApprovalChoice, *, by: str) -> None:
        """Answer one pending approval.

        Raises:
            ToolboxError: it is not pending, now or any more (``unknown_approval``), or does not
                take that answer (``bad_choice``).
        """
        waiting = self._waiting.get(approval_id)
        if waiting is None or waiting.answer.done():
            raise ToolboxError("No such approval is pending.", code="unknown_approval")
        if choice not in waiting.request.choices:
            takes = ", ".join(waiting.request.choices)
            raise ToolboxError(f"Answer with one of: {takes}.", code="bad_choice")
        waiting.answer.set_result(Decision(choice=choice, by=by))


class Gate(Protocol):
    """What stands between the checked arguments of a call and its run."""

    async def check(
        self, call: ToolCall, arguments: JsonObject, context: ToolContext
    ) -> ToolResult | None:
        """Return None to let the call run, or the result that answers it unrun.

        An exception keeps the call from running.
        """
        ...


def refusal(call: ToolCall, reason: str, *, by: str) -> ToolResult:
    """Return what the model is told of a call that was denied."""
    text = (
        f"Not run: {reason} It was denied (by {by}). Do not try to reach the same end another "
        "way; say what you wanted to do and go on without it, or ask the user."
    )
    return ToolResult(call_id=call.id, name=call.name, text=text, is_error=True)
