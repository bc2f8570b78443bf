"""What a small model is shown of a conversation, read from the messages alone."""

import pytest

from hermes.messages import ImagePart, Message, TextPart, ToolCall, ToolResult, text_message
from hermes.providers.local_conversation import (
    HISTORY_TOKENS,
    estimate_tokens,
    read_conversation,
)
from hermes.providers.local_prompts import IDENTITY


def call(name: str = "read_file", arguments: str = '{"path": "a.txt"}', id_: str = "c1") -> Message:
    part = ToolCall(id=id_, name=name, arguments=arguments)
    return Message(role="assistant", parts=(part,))


def result(text: str, id_: str = "c1", *, is_error: bool = False) -> Message:
    part = ToolResult(call_id=id_, name="read_file", text=text, is_error=is_error)
    return Message(role="tool", parts=(part,))


USER = text_message("user", "what is in a.txt?")


def test_a_result_is_told_in_the_question_and_no_tool_message_is_left() -> None:
    messages = read_conversation([USER, call(), result("tulips")]).reply_messages()

    assert [message.role for message in messages] == ["system", "user"]
    assert messages[1].text == (
        'what is in a.txt?\n\n[read_file {"path": "a.txt"} returned]\ntulips\n[end of result]\n\n'
        "Answer my question from this."
    )


def test_a_failed_tool_is_told_as_failed() -> None:
    messages = read_conversation([USER, call(), result("no file", is_error=True)]).reply_messages()

    assert '{"path": "a.txt"} failed]\nno file' in messages[1].text


def test_earlier_turns_keep_question_and_answer_together() -> None:
    conversation = read_conversation(
        [
            text_message("user", "hi"),
            text_message("assistant", "hello"),
            USER,
            call(),
            result("tulips"),
            text_message("assistant", "It says tulips."),
            text_message("user", "thanks"),
        ]
    )

    messages = conversation.reply_messages()

    assert [(message.role, message.text.split("\n")[0]) for message in messages[1:]] == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "what is in a.txt?"),
        ("assistant", "It says tulips."),
        ("user", "thanks"),
    ]
    assert "tulips\n[end of result]" in messages[3].text


def test_a_long_history_loses_its_oldest_turns_whole() -> None:
    past = [
        text_message(role, f"{number} " + "word " * 300)
        for number in range(20)
        for role in ("user", "assistant")
    ]

    messages = read_conversation([*past, USER]).reply_messages()

    shown = messages[1:-1]
    assert 0 < sum(estimate_tokens(message.text) for message in shown) <= HISTORY_TOKENS
    assert [message.role for message in shown] == ["user", "assistant"] * (len(shown) // 2)
    assert shown[-1].text.startswith("19 ")
    assert messages[-1].text == USER.text


def test_a_long_question_leaves_less_room_for_history() -> None:
    past = [text_message("user", "x " * 1500), text_message("assistant", "y " * 1500)]
    long = text_message("user", "z " * 10_000)

    messages = read_conversation([*past, long]).reply_messages()

    assert [message.role for message in messages] == ["system", "user"]
    assert messages[-1].text == long.text


def test_a_long_result_is_cut_in_the_middle_and_says_so() -> None:
    long = "start " + "x" * 20_000 + " end"

    told = read_conversation([USER, call(), result(long)]).reply_messages()[-1].text

    assert len(told) < 7000
    assert "start x" in told
    assert "x end" in told
    assert "characters left out]" in told


@pytest.mark.parametrize(
    ("messages", "may_route"),
    [
        ([USER], True),
        ([USER, call(), result("x")], True),
        ([USER, call(id_="1"), result("x", "1"), call(id_="2"), result("x", "2")], False),
        (
            [
                USER,
                call(id_="1"),
                result("x", "1"),
                call("terminal", '{"command": "ls"}', "2"),
                result("x", "2"),
                call("current_time", "{}", "3"),
                result("x", "3"),
            ],
            False,
        ),
        ([USER, call(id_="1"), result("x", "1"), text_message("assistant", "A"), USER], True),
    ],
    ids=["none", "one", "repeated", "three", "of an earlier turn"],
)
def test_choosing_stops_after_a_repeated_call_or_three(
    messages: list[Message], may_route: bool
) -> None:
    assert read_conversation(messages).may_route() is may_route


def test_the_same_call_is_known_however_its_arguments_are_written() -> None:
    conversation = read_conversation([USER, call(arguments='{ "path":"a.txt" }'), result("x")])

    assert conversation.has_made("read_file", {"path": "a.txt"})
    assert not conversation.has_made("read_file", {"path": "b.txt"})


def test_the_choice_sees_a_glimpse_of_what_was_done() -> None:
    question = read_conversation([USER, call(), result("tulips " * 100)]).route_question()

    assert question.startswith("what is in a.txt?\n[read_file")
    assert len(question) < 500


SHORT = "Answer in rhymes."


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("", IDENTITY),
        (SHORT, f"{IDENTITY}\n\n{SHORT}"),
        (f"Long identity.\n\nUse tools well.\n\n{SHORT}", f"{IDENTITY}\n\n{SHORT}"),
        ("Long identity.\n\nUse tools well.", IDENTITY),
        ("x" * 700, IDENTITY),
    ],
    ids=["none", "short", "after tools", "only ours", "too long"],
)
def test_of_the_system_text_only_short_instructions_of_the_client_are_kept(
    system: str, expected: str
) -> None:
    messages = [text_message("system", system), USER] if system else [USER]

    assert read_conversation(messages).reply_messages()[0].text == expected


def test_our_own_system_text_is_short() -> None:
    assert estimate_tokens(IDENTITY) < 100


def test_a_picture_is_named_as_unseen() -> None:
    picture = Message(
        role="user", parts=(TextPart(text="what is this?"), ImagePart(url="data:image/png;base64,"))
    )

    assert "cannot see" in read_conversation([picture]).reply_messages()[-1].text


def test_unpaired_messages_are_left_out() -> None:
    conversation = read_conversation(
        [
            text_message("assistant", "first words"),
            text_message("user", "unanswered"),
            USER,
            call(),
            result("for nobody", "other"),
        ]
    )

    assert [message.text for message in conversation.reply_messages()[1:]] == [USER.text]
