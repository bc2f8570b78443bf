"""A conversation after repair is one that every provider takes."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.messages import Message, TextPart, ToolCall, ToolResult, text_message
from hermes.sessions import repaired
from hermes.sessions.repair import INTERRUPTED

IDS = st.sampled_from(["a", "b", "c", ""])
PARTS = st.one_of(
    st.builds(TextPart, text=st.text(max_size=2)),
    st.builds(ToolCall, id=IDS, name=st.just("t"), arguments=st.just("{}")),
    st.builds(ToolResult, call_id=IDS, name=st.just("t"), text=st.text(max_size=3)),
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
MESSAGES = st.lists(
    st.builds(Message, role=ROLES, parts=st.lists(PARTS, max_size=4).map(tuple), id=st.text()),
    max_size=10,
).map(tuple)


def call(*ids: str) -> Message:
    return Message(
        role="assistant", parts=tuple(ToolCall(id=i, name="t", arguments="{}") for i in ids)
    )


def result(call_id: str, text: str = "done", *, message_id: str = "") -> Message:
    return Message(
        role="tool", parts=(ToolResult(call_id=call_id, name="t", text=text),), id=message_id
    )


def missing(call_id: str) -> Message:
    error = ToolResult(call_id=call_id, name="t", text=INTERRUPTED, is_error=True)
    return Message(role="tool", parts=(error,))


def say(text: str) -> Message:
    return text_message("user", text)


def assert_paired(messages: tuple[Message, ...]) -> None:
    """Walk the conversation as a strict provider does."""
    awaited: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.parts
            assert len(message.tool_results) == len(message.parts)
            for found in message.tool_results:
                awaited.remove(found.call_id)
            continue
        assert not awaited
        assert not message.tool_results
        awaited = [asked.id for asked in message.tool_calls]
        assert len(set(awaited)) == len(awaited)
        assert message.role == "assistant" or not awaited
    assert not awaited


@given(MESSAGES)
def test_after_repair_every_call_has_one_result_right_after_and_no_orphan_remains(messages):
    assert_paired(repaired(messages))


@given(MESSAGES)
def test_repair_changes_nothing_the_second_time(messages):
    once = repaired(messages)

    assert repaired(once) == once


@given(MESSAGES)
def test_repair_loses_no_words(messages):
    def words(of: tuple[Message, ...]) -> list[str]:
        return [m.text for m in of if m.role != "tool" and m.text]

    assert words(repaired(messages)) == words(messages)


@given(st.integers(0, 12))
def test_a_conversation_cut_anywhere_is_made_valid_and_keeps_what_was_done(cut):
    whole = (
        say("go"), call("a", "b"), result("a", "1"), result("b", "2"), say("more"),
        call("a"), result("a", "3"), text_message("assistant", "end"),
    )  # fmt: skip

    kept = repaired(whole[:cut])

    assert_paired(kept)
    done = [r.text for m in whole[:cut] for r in m.tool_results]
    assert [r.text for m in kept for r in m.tool_results if not r.is_error] == done


def test_a_sound_conversation_comes_back_as_it_is():
    both = Message(role="tool", parts=result("b").parts + result("a").parts, id="both")
    sound = (say("go"), call("a", "b"), both, call("a"), result("a"), say("thanks"))

    assert repaired(sound) == sound
    assert repaired(()) == ()


def test_a_call_without_a_result_is_said_to_have_been_interrupted():
    assert repaired((say("go"), call("a", "b"), result("b", message_id="m"))) == (
        say("go"),
        call("a", "b"),
        missing("a"),
        result("b", message_id="m"),
    )


def test_an_orphan_a_second_result_and_a_result_before_its_call_go():
    given_ = (result("x"), say("go"), result("a"), call("a"), result("a", "1"), result("a", "2"))

    assert repaired(given_) == (say("go"), call("a"), result("a", "1"))


def test_a_result_that_stands_too_late_is_moved_to_its_call():
    assert repaired((call("a"), say("wait"), result("a"), say("thanks"))) == (
        call("a"),
        result("a"),
        say("wait"),
        say("thanks"),
    )


def test_an_id_used_again_in_a_later_step_belongs_to_the_later_call():
    assert repaired((call("a"), call("a"), result("a", "second"))) == (
        call("a"),
        missing("a"),
        call("a"),
        result("a", "second"),
    )


def test_calls_and_results_in_messages_of_the_wrong_role_are_put_right():
    mixed = Message(role="user", parts=(TextPart(text="hi"), *result("a").parts, *call("b").parts))

    assert repaired((call("a"), mixed)) == (call("a"), result("a"), say("hi"))
