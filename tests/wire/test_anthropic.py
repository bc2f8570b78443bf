"""Anthropic Messages: answers, streamed and whole."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.errors import ProviderProtocolError, ProviderStatusError
from hermes.events import Finish, ReasoningDelta, TextDelta, ToolCallDelta
from hermes.messages import Usage
from hermes.sse import Decoder
from hermes.wire.anthropic import StreamDecoder, decode_answer


def event(value, name=None):
    head = b"event: " + (name or value["type"]).encode() + b"\n"
    return head + b"data: " + orjson.dumps(value) + b"\n\n"


START = event(
    {
        "type": "message_start",
        "message": {
            "type": "message",
            "model": "m",
            "content": [],
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 5,
                "output_tokens": 1,
            },
        },
    }
)
PING = event({"type": "ping"})
END = event({"type": "message_stop"})
USED = Usage(input=115, cached_input=100, output=7)


def block(index, **content):
    return event({"type": "content_block_start", "index": index, "content_block": content})


def delta(index, kind, **members):
    value = {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}
    return event(value)


def close(index):
    return event({"type": "content_block_stop", "index": index})


def text(index, piece):
    return delta(index, "text_delta", text=piece)


def stop(reason, **usage):
    value = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return event({**value, "usage": {"output_tokens": 7, **usage}})


def run(*parts, size=0):
    stream = b"".join(parts)
    reads = [stream[i : i + size] for i in range(0, len(stream), size)] if size else [stream]
    sse, decoder, deltas = Decoder(), StreamDecoder("here"), []
    for read in reads:
        deltas += decoder.feed(sse.feed(read))
    return deltas + decoder.finish()


def finish(reason, usage=USED):
    return Finish(reason=reason, usage=usage, model="m", origin="here")


def test_text_with_pings_is_one_answer():
    parts = [START, block(0, type="text", text=""), PING, text(0, "Hel"), PING, text(0, "lo")]
    assert run(*parts, close(0), stop("end_turn"), END) == [TextDelta("Hello"), finish("stop")]


def test_blocks_with_gaps_in_their_index_are_taken():
    parts = [START, block(0, type="text", text="a"), close(0), block(1, type="text", text="b")]
    parts += [close(1), block(4, type="text", text=""), text(4, "c"), text(4, "d"), close(4)]
    assert run(*parts, stop("end_turn"), END) == [TextDelta("abcd"), finish("stop")]


def test_text_of_a_block_that_was_never_begun_is_taken():
    assert run(START, text(3, "a"), stop("end_turn"), END)[0] == TextDelta("a")


def test_thinking_ends_with_its_signature():
    parts = [
        START,
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="pl"),
        delta(0, "thinking_delta", thinking="an"),
        delta(0, "signature_delta", signature="si"),
        delta(0, "signature_delta", signature="g"),
        close(0),
        block(1, type="redacted_thinking", data="opaque"),
        close(1),
        block(2, type="text", text=""),
        text(2, "42"),
        close(2),
    ]
    assert run(*parts, stop("end_turn"), END) == [
        ReasoningDelta("plan"),
        ReasoningDelta("", signature="sig"),
        ReasoningDelta("", opaque="opaque"),
        TextDelta("42"),
        finish("stop"),
    ]


def test_tools_are_counted_by_themselves_and_keep_their_arguments():
    parts = [
        START,
        block(0, type="text", text="Let me see."),
        close(0),
        block(2, type="tool_use", id="t1", name="read", input={}),
        delta(2, "input_json_delta", partial_json=""),
        delta(2, "input_json_delta", partial_json='{"path"'),
        block(5, type="tool_use", id="t2", name="now", input={}),
        delta(2, "input_json_delta", partial_json=':"a"}'),
        close(2),
        close(5),
        block(6, type="tool_use", id="t3", name="read", input={"path": "c"}),
        close(6),
    ]
    assert run(*parts, stop("tool_use"), END) == [
        TextDelta("Let me see."),
        ToolCallDelta(index=0, id="t1", name="read"),
        ToolCallDelta(index=0, arguments='{"path"'),
        ToolCallDelta(index=1, id="t2", name="now"),
        ToolCallDelta(index=0, arguments=':"a"}'),
        ToolCallDelta(index=1, arguments="{}"),
        ToolCallDelta(index=2, id="t3", name="read"),
        ToolCallDelta(index=2, arguments='{"path":"c"}'),
        finish("tool_calls"),
    ]


def test_a_call_that_was_cut_keeps_its_half_arguments_and_the_length():
    parts = [
        START,
        block(0, type="tool_use", id="t1", name="write", input={}),
        delta(0, "input_json_delta", partial_json='{"conte'),
    ]
    assert run(*parts, stop("max_tokens"), END)[-2:] == [
        ToolCallDelta(index=0, arguments='{"conte'),
        finish("length"),
    ]


def test_arguments_of_a_call_that_never_began_are_a_protocol_error():
    with pytest.raises(ProviderProtocolError):
        run(START, delta(1, "input_json_delta", partial_json='{"a":1}'))


def test_what_the_endpoint_does_itself_is_passed_over():
    parts = [
        START,
        block(0, type="server_tool_use", id="s1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"q":1}'),
        close(0),
        block(1, type="web_search_tool_result", content=[]),
        close(1),
        block(2, type="text", text=""),
        delta(2, "citations_delta", citation={}),
        text(2, "a"),
        delta(2, "brand_new_delta", x=1),
        event({"type": "brand_new_event"}),
        close(2),
    ]
    assert run(*parts, stop("end_turn"), END) == [TextDelta("a"), finish("stop")]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
    ],
)
def test_a_stop_reason_is_translated(word, reason):
    assert run(START, text(0, "a"), stop(word), END)[-1] == finish(reason)


@pytest.mark.parametrize(
    ("start", "end", "usage"),
    [
        ({"input_tokens": 0}, {"input_tokens": 9, "output_tokens": 2}, Usage(input=9, output=2)),
        (
            {"input_tokens": 9, "output_tokens": 1},
            {"output_tokens": 4, "output_tokens_details": {"thinking_tokens": 3}},
            Usage(input=9, output=4, reasoning=3),
        ),
        (
            {"input_tokens": 1, "cache_read_input_tokens": 8},
            {"input_tokens": 1, "cache_read_input_tokens": 8, "output_tokens": 4},
            Usage(input=9, cached_input=8, output=4),
        ),
        ({}, {}, Usage()),
        (None, None, Usage()),
    ],
)
def test_usage_is_put_together_from_start_and_end(start, end, usage):
    stream = [
        event({"type": "message_start", "message": {"model": "m", "usage": start}}),
        text(0, "a"),
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end}),
        END,
    ]
    assert run(*stream)[-1] == finish("stop", usage)


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize("before", [(), (START, PING)])
def test_an_overload_in_the_stream_is_an_overload(before):
    with pytest.raises(ProviderStatusError, match="Overloaded") as raised:
        run(*before, event(OVERLOADED))
    error = raised.value
    assert (error.status, error.code, error.retryable) == (529, "overloaded", True)


def test_an_error_that_is_no_json_is_still_an_error():
    with pytest.raises(ProviderStatusError, match="gone"):
        run(START, b"event: error\ndata: gone\n\n")


def test_text_before_an_error_of_the_same_read_is_delivered():
    decoder = StreamDecoder("here")
    assert decoder.feed(Decoder().feed(START + text(0, "a") + event(OVERLOADED))) == [
        TextDelta("a")
    ]
    with pytest.raises(ProviderStatusError):
        decoder.finish()


@pytest.mark.parametrize("parts", [(), (START,), (START, text(0, "a"), close(0))])
def test_a_stream_that_breaks_off_is_incomplete(parts):
    with pytest.raises(ProviderProtocolError) as raised:
        run(*parts)
    assert raised.value.code == "provider_incomplete"


def test_a_stop_reason_without_the_last_event_is_whole():
    assert run(START, text(0, "a"), stop("end_turn")) == [TextDelta("a"), finish("stop")]


def test_a_whole_answer_gives_the_same_deltas_as_a_stream():
    body = {
        "type": "message",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "plan", "signature": "sig"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }
    assert decode_answer(orjson.dumps(body), "here") == [
        ReasoningDelta("plan"),
        ReasoningDelta("", signature="sig"),
        TextDelta("Hello"),
        ToolCallDelta(index=0, id="t1", name="read"),
        ToolCallDelta(index=0, arguments='{"path":"a"}'),
        finish("tool_calls", Usage(input=9, output=4)),
    ]
    streamed = START + text(0, "a") + stop("end_turn") + END
    assert decode_answer(streamed, "here") == [TextDelta("a"), finish("stop")]


def test_a_body_that_is_no_answer_is_an_error():
    with pytest.raises(ProviderStatusError):
        decode_answer(orjson.dumps(OVERLOADED), "here")
    for body in (b"", b"{}", b"[]", b"<html>"):
        with pytest.raises(ProviderProtocolError):
            decode_answer(body, "here")


_parts = st.lists(
    st.sampled_from(
        [
            PING,
            block(0, type="text", text="x"),
            text(0, "é\U0001f600"),
            delta(1, "thinking_delta", thinking="t"),
            delta(1, "signature_delta", signature="s"),
            close(0),
            close(1),
            block(2, type="tool_use", id="t", name="n", input={}),
            delta(0, "text_delta", text=""),
        ]
    ),
    max_size=14,
)


def fold(deltas):
    out = []
    for x in deltas:
        if out and type(out[-1]) is type(x) and isinstance(x, TextDelta):
            out[-1] = TextDelta(out[-1].text + x.text)
        elif (
            out and isinstance(x, ReasoningDelta) and x.text and isinstance(out[-1], ReasoningDelta)
        ):
            if out[-1].signature:
                out.append(x)
            else:
                out[-1] = ReasoningDelta(out[-1].text + x.text)
        else:
            out.append(x)
    return out


@given(_parts, st.integers(1, 50))
@settings(deadline=None)
def test_any_cut_of_a_stream_folds_to_the_same_answer(parts, size):
    stream = [START, *parts, stop("end_turn"), END]
    assert fold(run(*stream, size=size)) == fold(run(*stream))


_junk = st.recursive(
    st.none() | st.integers(-1, 3) | st.sampled_from(["text_delta", "tool_use", "text", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "index", "delta", "content_block", "usage", "input"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(
    st.sampled_from(["content_block_start", "content_block_delta", "message_delta"]), _junk, _junk
)
@settings(deadline=None)
def test_no_json_crashes_the_decoder(kind, one, two):
    value = {"type": kind, "index": one, "delta": two, "content_block": two, "usage": one}
    decoder = StreamDecoder("here")
    try:
        decoder.feed(Decoder().feed(event(value)))
    except (ProviderStatusError, ProviderProtocolError):
        return
    assert not decoder.done
