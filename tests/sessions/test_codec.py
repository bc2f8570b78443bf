"""Messages as stored JSON: nothing lost, nothing unreadable, later versions tolerated."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import SessionError
from hermes.messages import (
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    text_message,
)
from hermes.sessions import codec

SOUND = st.text()
ANY = st.text(st.characters(exclude_categories=())) | st.just("\ud83d") | st.just("a\udc00\0b")


def parts(text: st.SearchStrategy[str]) -> st.SearchStrategy:
    images = st.builds(ImagePart, url=text, detail=text)
    return st.one_of(
        st.builds(TextPart, text=text),
        st.builds(ReasoningPart, text=text, signature=text, opaque=text, origin=text),
        images,
        st.builds(ToolCall, id=text, name=text, arguments=text),
        st.builds(
            ToolResult,
            call_id=text,
            name=text,
            text=text,
            is_error=st.booleans(),
            stored_as=text,
            images=st.lists(images, max_size=2).map(tuple),
        ),
    )


def messages(text: st.SearchStrategy[str]) -> st.SearchStrategy[Message]:
    return st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        parts=st.lists(parts(text), max_size=5).map(tuple),
        id=text,
    )


@given(messages(SOUND))
def test_every_message_comes_back_as_it_was(message):
    assert codec.decode(codec.encode(message)) == message


@given(st.lists(messages(SOUND), max_size=3).map(tuple))
def test_several_messages_come_back_in_their_order(several):
    assert codec.decode_all(codec.encode_all(several)) == several


@given(messages(ANY))
def test_a_message_with_lone_surrogates_is_stored_as_sound_text(message):
    stored = codec.encode(message)

    stored.encode()
    assert "\0" not in stored
    once = codec.decode(stored)
    assert codec.decode(codec.encode(once)) == once
    assert [part.kind for part in once.parts] == [part.kind for part in message.parts]


@given(ANY)
def test_clean_text_is_sound_and_stays_as_it_is(text):
    cleaned = codec.clean(text)

    cleaned.encode()
    assert "\0" not in cleaned
    assert codec.clean(cleaned) == cleaned


def test_a_lone_surrogate_becomes_the_replacement_character_and_emoji_stay():
    message = text_message("user", "hi \ud83d there \U0001f600 \ud83d\ude00")

    assert codec.decode(codec.encode(message)).text == "hi \ufffd there 😀 😀"


def test_the_stored_shape_is_this():
    message = Message(
        role="assistant",
        id="m1",
        parts=(
            ReasoningPart(text="hm", origin="a"),
            ToolCall(id="c", name="n", arguments="{"),
            ToolResult(call_id="c", name="n", text="t"),
        ),
    )

    assert orjson.loads(codec.encode(message)) == {
        "v": 1,
        "role": "assistant",
        "id": "m1",
        "parts": [
            {"kind": "reasoning", "text": "hm", "origin": "a"},
            {"kind": "tool_call", "id": "c", "name": "n", "arguments": "{"},
            {"kind": "tool_result", "call_id": "c", "name": "n", "text": "t"},
        ],
    }


def test_what_a_later_version_adds_is_skipped():
    body = orjson.dumps(
        {
            "v": 9,
            "role": "user",
            "mood": "new",
            "parts": [
                {"kind": "text", "text": "known", "language": "en"},
                {"kind": "hologram", "data": [1]},
                {"kind": "tool_result", "call_id": "c", "text": "t", "images": ["odd", {}]},
                "odd",
                {"kind": ["text"]},
            ],
        }
    ).decode()

    assert codec.decode(body) == Message(
        role="user",
        parts=(TextPart(text="known"), ToolResult(call_id="c", name="", text="t")),
    )


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", "{}", '{"role": "user"}', '{"role": "bot", "parts": []}',
     '{"role": "user", "parts": {}}', '{"role": ["user"], "parts": []}'],
)  # fmt: skip
def test_what_is_no_stored_message_is_said_to_be_unreadable(body):
    with pytest.raises(SessionError) as refused:
        codec.decode(body)

    assert refused.value.code == "message_unreadable"


@pytest.mark.parametrize("body", ["", "[", "{}", "null", "[null]", '[{"role": "user"}]'])
def test_what_are_no_stored_messages_are_said_to_be_unreadable(body):
    with pytest.raises(SessionError) as refused:
        codec.decode_all(body)

    assert refused.value.code == "message_unreadable"


def test_the_words_to_find_a_message_by_are_its_text_and_its_tools_results():
    message = Message(
        role="tool",
        parts=(
            TextPart(text="one"),
            ReasoningPart(text="two"),
            ToolCall(id="c", name="three", arguments="four"),
            ToolResult(call_id="c", name="n", text="five\0"),
        ),
    )

    assert codec.searchable(message) == "one\nfive\ufffd"
    long = text_message("user", "x" * 200_000)
    assert len(codec.searchable(long)) == codec.SEARCHABLE_CHARACTERS
