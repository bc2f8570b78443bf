"""Deltas folded into the message that they stand for."""

from collections.abc import AsyncIterator

import pytest

from hermes.events import Delta, Finish, ReasoningDelta, Retrying, TextDelta, ToolCallDelta
from hermes.messages import Message, Part, ReasoningPart, TextPart, ToolCall, Usage
from hermes.providers.collect import Answer, Collector, collect

END = Finish(reason="stop", usage=Usage(input=3, output=2), model="m", origin="o")


def parts(*deltas: Delta) -> tuple[Part, ...]:
    return answer(*deltas).message.parts


def answer(*deltas: Delta) -> Answer:
    collector = Collector()
    for delta in (*deltas, END):
        collector.add(delta)
    return collector.answer()


def test_adjacent_pieces_become_one_part_and_order_is_kept() -> None:
    assert answer(
        ReasoningDelta("let "), ReasoningDelta("me"), TextDelta("He"), TextDelta("llo"),
        ReasoningDelta("hm"), TextDelta("!"),
    ) == Answer(
        message=Message(
            role="assistant",
            parts=(
                ReasoningPart(text="let me", origin="o"),
                TextPart(text="Hello"),
                ReasoningPart(text="hm", origin="o"),
                TextPart(text="!"),
            ),
        ),
        reason="stop",
        usage=Usage(input=3, output=2),
        model="m",
    )  # fmt: skip


def test_a_signature_ends_a_block_of_reasoning() -> None:
    assert parts(
        ReasoningDelta("one"), ReasoningDelta("", "sig1"), ReasoningDelta("two"),
        ReasoningDelta("", "sig2"), ReasoningDelta("", opaque="enc"),
    ) == (
        ReasoningPart(text="one", signature="sig1", origin="o"),
        ReasoningPart(text="two", signature="sig2", origin="o"),
        ReasoningPart(text="", opaque="enc", origin="o"),
    )  # fmt: skip


def test_pieces_of_calls_are_joined_by_index_in_order_of_first_appearance() -> None:
    assert parts(
        TextDelta("I look."),
        ToolCallDelta(index=4, id="b", name="two", arguments='{"n"'),
        ToolCallDelta(index=1, id="a", name="one"),
        ToolCallDelta(index=4, arguments=":2}"),
        ToolCallDelta(index=1, arguments="{}"),
    ) == (
        TextPart(text="I look."),
        ToolCall(id="b", name="two", arguments='{"n":2}'),
        ToolCall(id="a", name="one", arguments="{}"),
    )


def test_ids_are_made_where_they_are_missing_or_not_unique() -> None:
    calls = answer(
        ToolCallDelta(index=0, id="x", name="a"),
        ToolCallDelta(index=1, id="x", name="b"),
        ToolCallDelta(index=2, name="c"),
    ).message.tool_calls
    assert calls[0].id == "x"
    assert len({call.id for call in calls}) == 3
    assert all(call.id for call in calls)


def test_arguments_stay_as_the_model_wrote_them() -> None:
    [call] = answer(ToolCallDelta(index=0, id="x", name="a", arguments='{"p":')).message.tool_calls
    assert call.arguments == '{"p":'


def test_nothing_is_a_message_without_parts() -> None:
    assert parts(TextDelta(""), Retrying(attempt=1, delay=0.0, code="x", message="y")) == ()


@pytest.mark.asyncio
async def test_a_whole_stream_is_collected() -> None:
    async def deltas() -> AsyncIterator[Delta]:
        yield TextDelta("Hi")
        yield END

    assert (await collect(deltas())).message.text == "Hi"
