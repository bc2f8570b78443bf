"""A turn from the agent's facade to a provider over real HTTP, and how it ends."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.budget import Budget
from hermes.agent.cancel import TurnControl
from hermes.errors import SessionError
from hermes.events import Retrying, ToolOutcomes, TurnResult
from hermes.messages import Message, ToolCall, ToolResult, text_message
from hermes.run_agent import AIAgent
from support.agents import CountingTool, Recorder, agent_at, calling, run_turn, runtime_for
from support.scripted_http import (
    DONE,
    LAST,
    Fault,
    ScriptedHttp,
    chat,
    chunk,
    delta,
    error,
    head,
    stream,
)

pytestmark = pytest.mark.asyncio


def terminal_events(sink: Recorder) -> list[str]:
    return [kind for kind in sink.kinds() if kind in ("turn_finished", "turn_failed")]


async def test_an_answer_streams_and_ends_once(scripted_http: ScriptedHttp, tmp_path: Path) -> None:
    scripted_http.script(chat("Hel", "lo"))
    sink = Recorder()
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, event_sink=sink))
    assert (result.status, result.text, result.usage.total) == ("completed", "Hello", 10)
    assert result.messages == (text_message("assistant", "Hello"),)
    assert sink.kinds()[:2] == ["turn_started", "step_started"]
    assert sink.kinds()[-1] == "turn_finished"
    assert sink.text() == "Hello"


async def test_tools_run_together_and_answer_in_call_order(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    both = asyncio.Barrier(2)

    async def meet(arguments: Any) -> str:
        await both.wait()
        return f"result {arguments['n']}"

    tool = CountingTool(act=meet)
    scripted_http.script(
        calling(("a", "count", '{"n":1}'), ("b", "count", '{"n":2}')), chat("Both done")
    )
    async with runtime_for(tmp_path, extra_tools=(tool,)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime))
    second = (await scripted_http.request(2)).body["messages"]
    answers = [(m["tool_call_id"], m["content"]) for m in second if m["role"] == "tool"]
    assert answers == [("a", "result 1"), ("b", "result 2")]
    assert result.tools == ToolOutcomes(attempted=2, succeeded=2, failed=0)
    assert result.text == "Both done"


async def test_text_before_tools_is_kept_apart_from_text_after(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    first = [delta(content="Let me look."), *calling(("a", "count", "{}"))[1:-1]]
    scripted_http.script(
        [head(), chunk(delta(content="Let me look.")), *first[1:], LAST], chat("It is 3.")
    )
    sink = Recorder()
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, event_sink=sink))
    assert result.text == sink.text() == "Let me look.\n\nIt is 3."
    assert [m.text for m in result.messages if m.role == "assistant"] == [
        "Let me look.",
        "It is 3.",
    ]


@pytest.mark.parametrize("finish", ["length", "stop", "tool_calls"])
async def test_half_written_arguments_never_run(
    scripted_http: ScriptedHttp, tmp_path: Path, finish: str
) -> None:
    tool = CountingTool()
    half = calling(("a", "count", '{"n": 1, "te'), finish=finish)
    scripted_http.script(half, chat("I could not."))
    async with runtime_for(tmp_path, extra_tools=(tool,)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime))
    assert tool.runs == []
    assert result.text == "I could not."
    [told] = [m for m in (await scripted_http.request(2)).body["messages"] if m["role"] == "tool"]
    assert told["content"]
    assert result.tools.failed == 1


async def test_a_limit_that_cuts_every_tool_call_ends_with_a_clear_error(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.default = lambda _r: calling(("a", "count", '{"n": 1, "te'), finish="length")
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime))
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.code == "truncated_tool_call"
    assert len(scripted_http.requests) == 3


async def test_empty_answers_are_nudged_three_times_then_explained(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.default = lambda _r: chat()
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime))
    assert result.error is not None
    assert result.error.code == "empty_answer"
    assert len(scripted_http.requests) == 4
    assert result.messages == ()


async def test_a_nudge_is_not_stored_as_the_users_words(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(chat(), chat("Here."))
    async with runtime_for(tmp_path) as runtime:
        agent = agent_at(scripted_http, runtime, stored=True, session_id="s")
        await run_turn(agent, "question")
        stored = await runtime.store.history("s")
    assert [(m.role, m.text) for m in stored] == [("user", "question"), ("assistant", "Here.")]


async def test_an_output_limit_before_any_word_names_the_limit(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(chat(finish="length"))
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime))
    assert result.error is not None
    assert "output limit" in result.error.message


async def test_an_answer_cut_by_the_limit_is_truncated_model_text(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(chat("part", finish="length"))
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime))
    assert (result.status, result.text) == ("truncated", "part")


async def test_a_stream_that_breaks_after_words_fails_with_what_was_said(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script([head(), chunk(delta(content="Half")), Fault.RESET])
    sink = Recorder()
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, event_sink=sink))
    assert (result.status, result.text) == ("failed", "Half")
    assert result.messages == (text_message("assistant", "Half"),)
    assert len(scripted_http.requests) == 1
    assert terminal_events(sink) == ["turn_failed"]


async def test_an_answer_nobody_reads_live_is_asked_for_again_when_it_breaks(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script([head(), chunk(delta(content="Half")), Fault.RESET], chat("Whole"))
    sink = Recorder()
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, event_sink=sink, live=False))
    assert (result.status, result.text) == ("completed", "Whole")
    assert sink.text() == "Whole"
    assert [e.code for e in sink.events if isinstance(e, Retrying)] == ["provider_connection"]


async def test_a_tool_call_that_breaks_off_is_asked_for_again_and_runs_once(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    tool = CountingTool()
    cut = calling(("a", "count", '{"n":1}'))[:2]
    scripted_http.script([*cut, Fault.RESET], calling(("a", "count", '{"n":1}')), chat("ok"))
    async with runtime_for(tmp_path, extra_tools=(tool,)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime))
    assert tool.runs == [{"n": 1}]
    assert result.text == "ok"


async def test_reasoning_in_fields_and_tags_stays_out_of_the_answer(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    pieces = [
        delta(reasoning_content="plan "), delta(content="<th"), delta(content="ink>more</thi"),
        delta(content="nk>42"), delta(finish="stop"), DONE,
    ]  # fmt: skip
    scripted_http.script(stream(*pieces))
    sink = Recorder()
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, event_sink=sink))
    assert result.text == sink.text() == "42"
    [message] = result.messages
    assert (message.text, message.reasoning) == ("42", "plan more")


async def test_the_step_budget_ends_the_turn_with_the_truth(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.default = lambda _r: calling(("a", "count", "{}"))
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, max_iterations=3))
    assert result.error is not None
    assert (result.status, result.error.code, result.steps) == ("failed", "budget_steps", 3)
    assert len(scripted_http.requests) == 3


async def test_the_token_budget_counts_all_steps(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.default = lambda _r: calling(("a", "count", "{}"))
    async with runtime_for(tmp_path, extra_tools=(CountingTool(),)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, budget=Budget(tokens=15)))
    assert result.error is not None
    assert (result.error.code, result.steps) == ("budget_tokens", 2)


async def test_the_time_budget_stops_a_tool_that_runs(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    async def forever(_arguments: Any) -> str:
        await asyncio.Event().wait()
        return ""

    scripted_http.script(calling(("a", "count", "{}")))
    async with runtime_for(tmp_path, extra_tools=(CountingTool(act=forever),)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, budget=Budget(seconds=0.2)))
    assert result.error is not None
    assert result.error.code == "budget_time"
    assert_paired(result.messages)


def assert_paired(messages: tuple[Message, ...]) -> None:
    asked = [call.id for message in messages for call in message.tool_calls]
    answered = [r.call_id for message in messages for r in message.tool_results]
    assert asked == answered


async def test_steering_enters_at_the_tool_boundary(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    control = TurnControl()

    async def act(_arguments: Any) -> str:
        control.steer("also mention X")
        return "done"

    scripted_http.script(calling(("a", "count", "{}")), chat("X it is"))
    sink = Recorder()
    async with runtime_for(tmp_path, extra_tools=(CountingTool(act=act),)) as runtime:
        agent = agent_at(scripted_http, runtime, control=control, event_sink=sink)
        result = await run_turn(agent)
    roles = [m["role"] for m in (await scripted_http.request(2)).body["messages"]]
    assert roles[-2:] == ["tool", "user"]
    assert (await scripted_http.request(2)).body["messages"][-1]["content"] == "also mention X"
    assert "steered" in sink.kinds()
    assert result.pending_steer == ""


async def test_steering_after_the_last_tool_comes_back_as_pending(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    control = TurnControl()
    scripted_http.script([*chat("a")[:2], gate, *chat("a")[2:]])
    sink = Recorder()
    async with runtime_for(tmp_path) as runtime:
        agent = agent_at(scripted_http, runtime, control=control, event_sink=sink)
        running = asyncio.ensure_future(run_turn(agent))
        await sink.until("text_delta")
        control.steer("too late")
        gate.set()
        result = await running
    assert result.pending_steer == "too late"


@pytest.mark.parametrize("outside", [True, False], ids=["by the task", "by the control"])
@pytest.mark.parametrize("moment", ["before headers", "in the stream", "in a tool"])
async def test_a_cancelled_turn_ends_once_is_valid_and_stops_the_wire(
    scripted_http: ScriptedHttp, tmp_path: Path, moment: str, outside: bool
) -> None:
    reached = asyncio.Event()

    async def wait(_arguments: Any) -> str:
        reached.set()
        await asyncio.Event().wait()
        return ""

    scripted_http.script(
        {
            "before headers": [Fault.HANG],
            "in the stream": [head(), chunk(delta(content="Half")), Fault.HANG],
            "in a tool": calling(("a", "count", "{}"), ("b", "count", "{}")),
        }[moment]
    )
    sink, control = Recorder(), TurnControl()
    async with runtime_for(tmp_path, extra_tools=(CountingTool(act=wait),)) as runtime:
        agent = agent_at(
            scripted_http, runtime, event_sink=sink, control=control, stored=True, session_id="s"
        )
        running = asyncio.ensure_future(run_turn(agent, "question"))
        request = await scripted_http.request(1)
        if moment == "in the stream":
            await sink.until("text_delta")
        elif moment == "in a tool":
            await asyncio.wait_for(reached.wait(), 20)
        if outside:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        else:
            control.cancel()
            assert (await running).status == "cancelled"
        if moment != "in a tool":
            await asyncio.wait_for(request.hung_up.wait(), 20)
        stored = await runtime.store.history("s")
    assert terminal_events(sink) == ["turn_failed"]
    assert len(scripted_http.requests) == 1
    assert stored[0] == text_message("user", "question")
    assert_paired(stored)
    if moment == "in the stream":
        assert stored[1].text == "Half"


async def test_a_stopped_tool_counts_as_neither_succeeded_nor_failed(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    control = TurnControl()

    async def stop_the_turn(_arguments: Any) -> str:
        control.cancel()
        await asyncio.Event().wait()
        return "never"

    tool = CountingTool(act=stop_the_turn)
    scripted_http.script(calling(("a", "count", "{}")))
    async with runtime_for(tmp_path, extra_tools=(tool,)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, control=control))
    assert result.status == "cancelled"
    assert result.tools == ToolOutcomes(attempted=1, succeeded=0, failed=0)


async def test_cancelling_before_the_start_asks_nothing(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    control, sink = TurnControl(), Recorder()
    control.cancel()
    async with runtime_for(tmp_path) as runtime:
        agent = agent_at(scripted_http, runtime, control=control, event_sink=sink)
        result = await run_turn(agent)
    assert result.status == "cancelled"
    assert scripted_http.requests == []
    assert sink.kinds() == ["turn_started", "turn_failed"]


async def test_an_error_is_no_conversation_and_roles_alternate_after_it(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(error(400, "broken"), chat("Hello"))
    async with runtime_for(tmp_path) as runtime:
        first = await run_turn(agent_at(scripted_http, runtime, stored=True, session_id="s"), "one")
        await run_turn(agent_at(scripted_http, runtime, stored=True, session_id="s"), "two")
    assert first.status == "failed"
    sent = (await scripted_http.request(2)).body["messages"]
    [question] = [m for m in sent if m["role"] == "user"]
    assert question["content"] == "one\n\ntwo"
    assert len(sent) == 2
    assert "broken" not in str(sent)


async def test_two_turns_of_one_session_run_one_after_the_other(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    answer = chat("first")
    scripted_http.script([*answer[:1], gate, *answer[1:]], chat("second"))
    async with runtime_for(tmp_path) as runtime:

        def turn(text: str) -> Any:
            return run_turn(agent_at(scripted_http, runtime, stored=True, session_id="s"), text)

        one = asyncio.ensure_future(turn("one"))
        await scripted_http.request(1)
        two = asyncio.ensure_future(turn("two"))
        other = agent_at(scripted_http, runtime, stored=True, session_id="other")
        scripted_http.default = lambda _r: chat("other")
        await asyncio.sleep(0)
        assert len(scripted_http.requests) == 1
        gate.set()
        await asyncio.gather(one, two)
        await run_turn(other, "three")
    sent = (await scripted_http.request(2)).body["messages"]
    assert [m["content"] for m in sent if m["role"] != "system"] == ["one", "first", "two"]


async def test_a_turn_that_cannot_be_stored_says_so(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(chat("Hello"))
    sink = Recorder()
    async with runtime_for(tmp_path) as runtime:

        async def refuse(*_: Any, **__: Any) -> int:
            raise SessionError("The disk is full.", code="session_store_unavailable")

        runtime.store.append_turn = refuse  # type: ignore[method-assign]
        agent = agent_at(scripted_http, runtime, stored=True, session_id="s", event_sink=sink)
        result = await run_turn(agent)
    assert result.error is not None
    assert (result.status, result.error.code) == ("failed", "session_store_unavailable")
    assert terminal_events(sink) == ["turn_failed"]


async def test_an_unanswered_call_of_an_interrupted_turn_is_answered_and_not_run_again(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    tool = CountingTool()
    history = (
        text_message("user", "count"),
        Message(role="assistant", parts=(ToolCall(id="a", name="count", arguments="{}"),)),
        Message(role="tool", parts=(ToolResult(call_id="a", name="count", text="1"),)),
    )
    scripted_http.script(chat("It was 1."))
    async with runtime_for(tmp_path, extra_tools=(tool,)) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime), "go on", history)
    sent = (await scripted_http.request(1)).body["messages"]
    assert [m["role"] for m in sent[1:]] == ["user", "assistant", "tool", "user"]
    assert (tool.runs, result.text) == ([], "It was 1.")


async def test_a_failing_callback_does_not_end_the_turn(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    def fail(_text: str) -> None:
        raise RuntimeError("an embedder's mistake")

    scripted_http.script(chat("Hello"))
    async with runtime_for(tmp_path) as runtime:
        result = await run_turn(agent_at(scripted_http, runtime, stream_delta_callback=fail))
    assert (result.status, result.text) == ("completed", "Hello")


async def test_the_facade_gives_the_result_as_a_dictionary(
    scripted_http: ScriptedHttp, tmp_path: Path
) -> None:
    scripted_http.script(chat("Hello"))
    async with runtime_for(tmp_path) as runtime:
        agent = agent_at(scripted_http, runtime, session_id="s")
        answer = await agent.run_conversation(
            user_message="hi", conversation_history=[], task_id="t"
        )
    assert answer["final_response"] == "Hello"
    assert (answer["completed"], answer["partial"], answer["failed"]) == (True, False, False)
    assert answer["session_id"] == "s"
    assert (agent.session_prompt_tokens, agent.session_completion_tokens) == (7, 3)


async def test_an_agent_without_a_runtime_makes_and_releases_its_own(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.script(chat("Hello"))
    agent = AIAgent(provider="custom", base_url=scripted_http.base_url, model="m")
    result: TurnResult = await run_turn(agent)
    await agent.aclose()
    assert result.text == "Hello"
