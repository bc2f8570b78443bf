"""Approvals that wait for a person, and the gate before a tool call."""

import asyncio
from pathlib import Path

import pytest

from hermes.agent.step import DirectExecution
from hermes.errors import ToolboxError
from hermes.events import ApprovalChoice, ApprovalRequested, ApprovalResolved, TurnEvent
from hermes.messages import JsonObject, ToolCall, ToolResult, ToolSpec
from hermes.providers.scripted import ScriptedProvider
from hermes.tools.approval import ApprovalBroker, Decision, refusal
from hermes.tools.base import FunctionTool, ToolContext
from hermes.tools.toolbox import Toolbox

_CALL = ToolCall(id="c1", name="act", arguments="{}")


def _ask(
    broker: ApprovalBroker,
    events: list[TurnEvent],
    session_id: str = "s",
    choices: tuple[ApprovalChoice, ...] = ("once", "deny"),
) -> asyncio.Task[Decision]:
    return asyncio.ensure_future(
        broker.ask(
            _CALL,
            session_id=session_id,
            reason="It acts.",
            detail="act",
            emit=events.append,
            choices=choices,
        )
    )


async def _pending(broker: ApprovalBroker, count: int) -> tuple[ApprovalRequested, ...]:
    await asyncio.sleep(0)  # each task runs up to its wait
    found = broker.pending("s")
    assert len(found) == count
    return found


@pytest.mark.asyncio
async def test_an_answer_reaches_the_request_it_names_and_no_other() -> None:
    broker, events = ApprovalBroker(), list[TurnEvent]()
    first, second = _ask(broker, events), _ask(broker, events)
    one, two = await _pending(broker, 2)

    broker.resolve(two.approval_id, "once", by="terminal")

    assert await second == Decision(choice="once", by="terminal")
    assert not first.done()
    assert broker.pending("s") == (one,)
    broker.resolve(one.approval_id, "deny", by="api")
    assert await first == Decision(choice="deny", by="api")
    ended = [(e.approval_id, e.choice) for e in events if isinstance(e, ApprovalResolved)]
    assert ended == [(two.approval_id, "once"), (one.approval_id, "deny")]


@pytest.mark.asyncio
async def test_a_second_answer_an_unknown_id_and_a_wrong_choice_are_refused() -> None:
    broker = ApprovalBroker()
    asked = _ask(broker, [])
    (request,) = await _pending(broker, 1)

    with pytest.raises(ToolboxError) as wrong:
        broker.resolve(request.approval_id, "always", by="api")
    broker.resolve(request.approval_id, "once", by="api")
    with pytest.raises(ToolboxError) as again:
        broker.resolve(request.approval_id, "deny", by="api")
    with pytest.raises(ToolboxError) as unknown:
        broker.resolve("appr_x", "once", by="api")

    codes = [error.value.code for error in (wrong, again, unknown)]
    assert codes == ["bad_choice", "unknown_approval", "unknown_approval"]
    assert (await asked).choice == "once"


@pytest.mark.asyncio
async def test_no_answer_in_time_is_a_denial() -> None:
    broker, events = ApprovalBroker(time_limit=0.01), list[TurnEvent]()

    decision = await asyncio.wait_for(_ask(broker, events), 5)

    assert decision == Decision(choice="deny", by="time limit")
    assert [event.kind for event in events] == ["approval_requested", "approval_resolved"]
    assert broker.pending("s") == ()


@pytest.mark.asyncio
async def test_a_cancelled_request_is_resolved_and_waits_no_more() -> None:
    broker, events = ApprovalBroker(), list[TurnEvent]()
    asked = _ask(broker, events)
    await _pending(broker, 1)

    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    last = events[-1]
    assert isinstance(last, ApprovalResolved)
    assert (last.choice, last.by) == ("deny", "cancelled")
    assert broker.pending("s") == ()


class _Refusing:
    async def check(
        self, call: ToolCall, arguments: JsonObject, context: ToolContext
    ) -> ToolResult | None:
        return refusal(call, "It acts.", by="time limit") if context.attended else None


@pytest.mark.asyncio
@pytest.mark.parametrize("attended", [True, False])
async def test_a_call_runs_only_when_the_gate_lets_it(tmp_path: Path, attended: bool) -> None:
    ran: list[JsonObject] = []

    async def act(arguments: JsonObject, _context: ToolContext) -> str:
        ran.append(arguments)
        return "done"

    spec = ToolSpec(name="act", description="", parameters={"type": "object", "properties": {}})
    execution = DirectExecution(
        provider=ScriptedProvider([]),
        toolbox=Toolbox([FunctionTool(spec=spec, function=act)]),
        context=ToolContext(
            session_id="s",
            turn_id="t",
            call_id="",
            workdir=tmp_path,
            results=tmp_path,
            attended=attended,
        ),
        gate=_Refusing(),
    )

    result = await execution.tool_call(_CALL, {})

    assert result.is_error is attended
    assert ran == ([] if attended else [{}])
    assert ("Do not try" in result.text) is attended
