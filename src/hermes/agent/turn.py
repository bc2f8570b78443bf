"""The turn loop: model calls and tool calls until there is an answer, or the truth about why not.

It reaches the world only through ``Execution`` and ``Conversation``; it knows no provider, no
tool and no client.
"""

import asyncio
import logging
from dataclasses import dataclass, field, replace

from hermes.agent.budget import Budget
from hermes.agent.cancel import TurnControl, finish_despite_cancel
from hermes.agent.execution import Conversation, Execution, ModelAnswer
from hermes.agent.tool_round import ToolRound
from hermes.agent.transcript import alternating, presentable, tool_message, unrun
from hermes.errors import EmptyAnswerError, HermesError, ProviderError, TurnCancelled, TurnError
from hermes.events import (
    EventSink,
    Steered,
    StepStarted,
    TextDelta,
    ToolOutcomes,
    TurnEvent,
    TurnFailed,
    TurnFinished,
    TurnResult,
    TurnStarted,
    TurnStatus,
)
from hermes.messages import Message, ModelOptions, ModelRequest, Usage, text_message

_log = logging.getLogger(__name__)

_COMMIT_LIMIT = 20.0
"""Seconds that storing a turn, or saving what it has so far, may take."""

_BETWEEN_STEPS = "\n\n"
"""What separates the texts of two steps in the answer."""

_NUDGE = "Your last answer was empty. Answer the user now, in words."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One user input and how it is to be answered."""

    turn_id: str
    session_id: str
    user: Message
    system: str = ""
    model: str = ""
    options: ModelOptions = field(default_factory=ModelOptions)
    budget: Budget = field(default_factory=Budget)


async def run_turn(
    request: TurnRequest,
    execution: Execution,
    conversation: Conversation,
    sink: EventSink,
    control: TurnControl,
) -> TurnResult:
    """Answer one user input, store it, and emit the turn's events, the terminal one last.

    The result tells every way to end, also ``control.cancel()``. The turn is stored before the
    terminal event goes out; where storing fails, the turn has failed.

    Raises:
        CancelledError: the task was cancelled by somebody else than ``control``; the turn is
            stored and its terminal event emitted all the same.
    """
    turn = _Turn(request, execution, conversation, sink, control)
    control.bind()
    sink.emit(TurnStarted(turn_id=request.turn_id, session_id=request.session_id))
    try:
        result, interruption = await _held(turn, request.user, conversation, control)
    except HermesError as error:
        _log.warning("the conversation could not be used: %s", error.message)
        result, interruption = turn.ended(error), None
    except Exception:  # noqa: BLE001 - the edge of a turn, which always ends truly
        _log.exception("the conversation could not be used")
        unstored = TurnError("The conversation could not be stored; see the server's log.")
        result, interruption = turn.ended(unstored), None
    absorbed = control.absorb_cancel()
    control.release()
    sink.emit(_terminal(result))
    if interruption is not None and not absorbed:
        raise interruption
    return result


async def _held(
    turn: "_Turn", user: Message, conversation: Conversation, control: TurnControl
) -> tuple[TurnResult, asyncio.CancelledError | None]:
    """Run the turn while its conversation is held, and store it; also say what interrupted it."""
    interruption: asyncio.CancelledError | None = None
    result: TurnResult | None = None
    try:
        if control.cancel_requested:
            raise asyncio.CancelledError
        async with conversation.open() as history:
            try:
                result = await turn.run(history)
            except asyncio.CancelledError as error:
                interruption = error
                result = turn.stopped()
            if conversation.is_stored:
                await finish_despite_cancel(conversation.commit(user, result), limit=_COMMIT_LIMIT)
    except asyncio.CancelledError as error:
        # Before the turn began, or too late to stop it: then it has ended and is stored.
        interruption = error
    return result or turn.stopped(), interruption


def _terminal(result: TurnResult) -> TurnEvent:
    if result.status in ("completed", "truncated"):
        return TurnFinished(result=result)
    return TurnFailed(result=result)


class _Turn:
    """What one turn has gathered so far."""

    def __init__(
        self,
        request: TurnRequest,
        execution: Execution,
        conversation: Conversation,
        sink: EventSink,
        control: TurnControl,
    ) -> None:
        self._request = request
        self._execution = execution
        self._conversation = conversation
        self._sink = sink
        self._control = control
        self._messages: list[Message] = []
        self._text: list[str] = []
        self._step_text: list[str] = []
        self._usage = Usage()
        self._steps = 0
        self._model = ""
        self._outcomes = ToolOutcomes()
        self._empty = 0
        self._cut = 0

    async def run(self, history: tuple[Message, ...]) -> TurnResult:
        """Go on until the turn has ended, however it ends; only a cancellation is raised."""
        limit = asyncio.timeout(self._request.budget.seconds or None)
        try:
            async with limit:
                return await self._loop(history)
        except TimeoutError:
            if not limit.expired():
                _log.exception("turn %s failed", self._request.turn_id)
                return self._defect()
            return self.ended(
                TurnError(
                    f"The turn used its {self._request.budget.seconds:g} seconds before it was "
                    "done. Send another message to go on, or raise agent.turn_timeout.",
                    code="budget_time",
                )
            )
        except HermesError as error:
            return self.ended(error)
        except Exception:  # noqa: BLE001 - the edge of a turn, which always ends truly
            _log.exception("turn %s failed", self._request.turn_id)
            return self._defect()

    def _defect(self) -> TurnResult:
        return self.ended(
            TurnError(
                "The turn failed for an internal reason; see the server's log.",
                code="internal_error",
            )
        )

    async def _loop(self, history: tuple[Message, ...]) -> TurnResult:
        request = self._request
        head = [text_message("system", request.system)] if request.system else []
        context = head + alternating([*history, request.user])
        while True:
            answer = await self._step(context)
            if answer.message.tool_calls:
                context += await self._act(answer)
            elif answer.message.text.strip():
                self._keep(answer.message)
                return self._result("truncated" if answer.reason == "length" else "completed")
            else:
                context += self._nudge(answer)

    async def _step(self, context: list[Message]) -> ModelAnswer:
        request = self._request
        request.budget.check(self._steps, self._usage)
        self._steps += 1
        self._sink.emit(StepStarted(number=self._steps))
        answer = await self._execution.model_call(
            ModelRequest(
                model=request.model,
                messages=tuple(context),
                tools=self._execution.tools,
                options=request.options,
            ),
            self._take,
        )
        self._usage += answer.usage
        self._model = answer.model or self._model
        return answer

    def _take(self, event: TurnEvent) -> None:
        if isinstance(event, TextDelta):
            if not self._step_text and self._text:
                self._text.append(_BETWEEN_STEPS)
                self._sink.emit(TextDelta(_BETWEEN_STEPS))
            self._step_text.append(event.text)
            self._text.append(event.text)
        self._sink.emit(event)

    def _keep(self, *messages: Message) -> None:
        self._messages.extend(messages)
        self._step_text = []

    async def _act(self, answer: ModelAnswer) -> list[Message]:
        """Run the answer's calls; return the messages that the next step sees in addition."""
        start = len(self._messages)
        calls = answer.message.tool_calls
        tools = ToolRound(
            self._execution, self._sink.emit, parallel=self._request.budget.parallel_tools
        )
        try:
            if answer.reason == "length":
                self._refuse_cut(answer, tools)
            else:
                await tools.run(calls)
        finally:
            # Also when the round is cancelled: a call never stands without its result.
            self._keep(
                presentable(answer.message), *(tool_message(r) for r in tools.ordered(calls))
            )
            counts = tools.outcomes(calls)
            self._outcomes = ToolOutcomes(
                attempted=self._outcomes.attempted + counts.attempted,
                succeeded=self._outcomes.succeeded + counts.succeeded,
                failed=self._outcomes.failed + counts.failed,
            )
        if steer := self._control.take_steers():
            self._keep(text_message("user", steer))
            self._sink.emit(Steered(text=steer))
        await self._save()
        return self._messages[start:]

    async def _save(self) -> None:
        """Save the turn so far, so that no tool that ran is run again if this process dies.

        It is done before the next step, also under cancellation: a save that came after the
        commit would bring the turn back a second time.
        """
        so_far = (self._request.user, *self._messages)
        try:
            await finish_despite_cancel(self._conversation.keep(so_far), limit=_COMMIT_LIMIT)
        except (HermesError, TimeoutError) as error:
            _log.warning(
                "turn %s goes on, but its tool results are not saved yet: %s",
                self._request.turn_id,
                error,
            )

    def _refuse_cut(self, answer: ModelAnswer, tools: ToolRound) -> None:
        self._cut += 1
        for call in answer.message.tool_calls:
            tools.results[call.id] = unrun(
                call,
                "Not run: the output limit cut this step's tool calls. Call again with shorter "
                "arguments, in several calls if need be.",
            )
        if self._cut > self._request.budget.truncated_calls:
            raise TurnError(
                "The model's output limit cut its tool call again and again, so it was not run. "
                "Raise model.max_tokens or ask for smaller steps.",
                code="truncated_tool_call",
            )

    def _nudge(self, answer: ModelAnswer) -> list[Message]:
        """Return what to add to the context after an empty answer; it is never stored."""
        if answer.reason == "length":
            raise EmptyAnswerError(
                "The model used its whole output limit before it wrote a word of its answer. "
                "Raise model.max_tokens, or lower the reasoning effort."
            )
        if answer.reason == "content_filter":
            raise EmptyAnswerError("The model's content filter withheld the answer.")
        self._empty += 1
        _log.warning(
            "turn %s: empty answer %d of at most %d",
            self._request.turn_id,
            self._empty,
            self._request.budget.empty_answers,
        )
        if self._empty > self._request.budget.empty_answers:
            raise EmptyAnswerError(
                "The model answered with nothing, also when asked again. "
                "Try again, or choose another model."
            )
        return [text_message("assistant", "…"), text_message("user", _NUDGE)]

    def stopped(self) -> TurnResult:
        """Return the result of a turn that was cancelled."""
        return self.ended(TurnCancelled("The turn was stopped."), "cancelled")

    def ended(self, error: HermesError, status: TurnStatus = "failed") -> TurnResult:
        """Return the result of a turn that did not come to its answer; what was shown is kept."""
        if self._step_text:
            self._keep(text_message("assistant", "".join(self._step_text)))
        out_of_budget = isinstance(error, TurnError) and error.code.startswith("budget_")
        if status == "failed" and out_of_budget and self._text:
            status = "truncated"
        if isinstance(error, ProviderError):
            _log.warning("turn %s failed: %s: %s", self._request.turn_id, error.code, error.message)
        return replace(self._result(status), error=error)

    def _result(self, status: TurnStatus) -> TurnResult:
        return TurnResult(
            status=status,
            text="".join(self._text),
            messages=tuple(self._messages),
            usage=self._usage,
            steps=self._steps,
            tools=self._outcomes,
            model=self._model,
            pending_steer=self._control.take_steers(),
        )
