"""Chat Completions: every dialect of an answer, streamed and whole."""

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.errors import ProviderProtocolError, ProviderStatusError
from hermes.events import Finish, ReasoningDelta, TextDelta, ToolCallDelta
from hermes.messages import Usage
from hermes.sse import Decoder
from hermes.wire.openai_chat import StreamDecoder, decode_answer

DONE = b"data: [DONE]\n\n"


def event(value, name=""):
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + orjson.dumps(value) + b"\n\n"


def d(**delta):
    return event({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def f(reason, **delta):
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def tc(*entries):
    return d(tool_calls=list(entries))


def call(index, call_id=None, name=None, arguments=None):
    entry = {"function": {}}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    if name is not None:
        entry["function"]["name"] = name
    if arguments is not None:
        entry["function"]["arguments"] = arguments
    return entry


def run(*parts, size=0):
    """All deltas of a stream fed in reads of ``size`` bytes (0: one part a read)."""
    stream = b"".join(parts)
    reads = [stream[i : i + size] for i in range(0, len(stream), size)] if size else parts
    sse, decoder, deltas = Decoder(), StreamDecoder("here"), []
    for read in reads:
        deltas += decoder.feed(sse.feed(read))
    return deltas + decoder.finish()


def fold(deltas):
    """Text, reasoning, calls by index, and the finish."""
    text = "".join(x.text for x in deltas if isinstance(x, TextDelta))
    reasoning = "".join(x.text for x in deltas if isinstance(x, ReasoningDelta))
    calls = {}
    for x in deltas:
        if isinstance(x, ToolCallDelta):
            old = calls.get(x.index, ("", "", ""))
            assert not (old[0] and x.id), "an id comes once"
            assert not (old[1] and x.name), "a name comes once"
            calls[x.index] = (old[0] or x.id, old[1] or x.name, old[2] + x.arguments)
    finishes = [x for x in deltas if isinstance(x, Finish)]
    assert finishes == deltas[-1:]
    assert list(calls) == list(range(len(calls)))
    return text, reasoning, list(calls.values()), finishes[0]


STOP = Finish(reason="stop", model="m", origin="here")
U = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
USED = Usage(input=9, output=4)

TEXT_DIALECTS = {
    "plain": [d(role="assistant", content=""), d(content="Hel"), d(content="lo"), f("stop"), DONE],
    "role on every chunk": [
        d(role="assistant", content="Hel"),
        d(role="assistant", content="lo"),
        f("stop"),
        DONE,
    ],
    "the last text beside the finish": [d(content="Hel"), f("stop", content="lo"), DONE],
    "no marker at the end": [d(content="Hello"), f("stop")],
    "only the marker at the end": [d(content="Hello"), DONE],
    "a null delta": [
        d(content="Hello"),
        event({"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}),
    ],
    "no delta": [d(content="Hello"), event({"choices": [{"finish_reason": "stop"}]}), DONE],
    "empty and missing choices": [
        event({"choices": []}),
        d(content="Hello"),
        event({"choices": None}),
        event({"id": "x"}),
        event({"choices": [None]}),
        f("stop"),
        DONE,
    ],
    "null members": [
        d(role="assistant", content="Hel", refusal=None, tool_calls=None, function_call=None),
        event(
            {
                "model": "m",
                "usage": None,
                "error": None,
                "choices": [{"delta": {"content": "lo", "reasoning_content": None}}],
            }
        ),
        f("stop", content=None, tool_calls=[]),
        DONE,
    ],
    "keep-alives": [
        b": ping\n\n",
        event({}),
        b"data:\n\n",
        b"data: ping\n\n",
        b"event: ping\ndata: {}\n\n",
        b"data: null\n\n",
        d(content=""),
        d(),
        d(content="Hello"),
        f("stop"),
        DONE,
    ],
    "content as parts": [
        d(content=[{"type": "text", "text": "Hel"}, "l", None, {"type": "text", "text": "o"}]),
        f("stop"),
        DONE,
    ],
    "a refusal": [d(refusal="Hel"), d(refusal="lo"), f("stop"), DONE],
    "message in place of delta": [
        event({"model": "m", "choices": [{"message": {"content": "Hello"}}]}),
        f("stop"),
        DONE,
    ],
    "the older text member": [
        event({"model": "m", "choices": [{"text": "Hello", "finish_reason": "stop"}]}),
        DONE,
    ],
    "unknown finish": [d(content="Hello"), f("because"), DONE],
    "anthropic's word": [d(content="Hello"), f("end_turn"), DONE],
    "upper case": [d(content="Hello"), f("STOP"), DONE],
    "empty finish before the end": [d(content="Hel"), f("", content="lo"), f("stop"), DONE],
    "only the first choice counts": [
        event(
            {
                "model": "m",
                "choices": [{"delta": {"content": "Hello"}}, {"delta": {"content": "X"}}],
            }
        ),
        f("stop"),
        DONE,
    ],
    "nothing after the marker": [d(content="Hello"), f("stop"), DONE, d(content="X")],
    "marker with spaces": [d(content="Hello"), f("stop"), b"data:  [DONE] \n\n"],
    "an unknown event name": [
        event({"model": "m", "choices": [{"delta": {"content": "Hello"}}]}, name="chunk"),
        f("stop"),
    ],
}


@pytest.mark.parametrize("parts", TEXT_DIALECTS.values(), ids=TEXT_DIALECTS)
@pytest.mark.parametrize("size", [0, 1, 1 << 20])
def test_every_dialect_of_text_gives_the_text_and_a_stop(parts, size):
    assert fold(run(*parts, size=size)) == ("Hello", "", [], STOP)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
    ],
)
def test_a_finish_reason_is_translated(word, reason):
    assert fold(run(d(content="a"), f(word), DONE))[3].reason == reason


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_comes_from_any_of_its_fields_and_is_never_text(field):
    deltas = run(
        d(**{field: "pl"}), d(**{field: "an", "content": None}), d(content="42"), f("stop")
    )
    assert fold(deltas) == ("42", "plan", [], STOP)


def test_reasoning_in_two_fields_of_one_delta_counts_once():
    parts = [{"type": "reasoning.text", "text": "plan"}]
    deltas = run(d(reasoning="plan", reasoning_content="plan", reasoning_details=parts), f("stop"))
    assert fold(deltas)[1] == "plan"
    assert fold(run(d(reasoning_details=parts), f("stop")))[1] == "plan"


def test_thinking_parts_of_a_content_list_are_reasoning():
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]}]
    deltas = run(d(content=content), d(content=[{"type": "text", "text": "42"}]), f("stop"))
    assert fold(deltas) == ("42", "plan", [], STOP)


def test_one_read_gives_merged_deltas_in_order():
    stream = [d(reasoning="a"), d(reasoning="b"), d(content="c"), d(content="d"), d(reasoning="e")]
    assert run(*stream, f("stop"), size=1 << 20) == [
        ReasoningDelta("ab"),
        TextDelta("cd"),
        ReasoningDelta("e"),
        STOP,
    ]


USAGE_DIALECTS = {
    "a chunk of its own": [f("stop"), event({"choices": [], "usage": U}), DONE],
    "without choices": [f("stop"), event({"usage": U}), DONE],
    "beside the finish": [event({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": U})],
    "on every chunk": [
        event({"choices": [{"delta": {"content": ""}}], "usage": {**U, "completion_tokens": 1}}),
        event({"choices": [{"delta": {"content": ""}}], "usage": U}),
        f("stop"),
        DONE,
    ],
    "groq's place": [f("stop"), event({"choices": [], "x_groq": {"usage": U}}), DONE],
    "null afterwards": [event({"choices": [], "usage": U}), f("stop"), event({"usage": None})],
}


@pytest.mark.parametrize("parts", USAGE_DIALECTS.values(), ids=USAGE_DIALECTS)
def test_usage_is_taken_wherever_it_stands(parts):
    assert fold(run(d(content="Hello"), *parts))[3] == Finish(
        reason="stop", usage=USED, model="m", origin="here"
    )


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (
            {
                "prompt_tokens_details": {"cached_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input=9, cached_input=5, output=4, reasoning=3),
        ),
        ({"prompt_cache_hit_tokens": 6}, Usage(input=9, cached_input=6, output=4)),
        ({"cached_tokens": 7}, Usage(input=9, cached_input=7, output=4)),
        ({"prompt_tokens_details": None, "completion_tokens": None}, Usage(input=9)),
        ({"prompt_tokens": "9", "completion_tokens": 4.0}, Usage(output=4)),
    ],
)
def test_usage_details_are_kept(extra, expected):
    assert (
        fold(run(d(content="a"), event({"usage": {**U, **extra}}), f("stop")))[3].usage == expected
    )


A, B, C = '{"path":"a"}', '{"path":"b"}', '{"path":"c"}'
THREE = [("c1", "read", A), ("c2", "read", B), ("c3", "read", C)]

CALL_DIALECTS = {
    "standard": [
        tc(call(0, "c1", "read", "")),
        tc(call(0, None, None, A[:4])),
        tc(call(0, None, None, A[4:])),
        tc(call(1, "c2", "read", B)),
        tc(call(2, "c3", "read", C[:1]), call(2, None, None, C[1:])),
    ],
    "interleaved": [
        tc(call(0, "c1", "read", A[:5]), call(1, "c2", "read", B[:5]), call(2, "c3", "read", "")),
        tc(call(2, None, None, C), call(0, None, None, A[5:]), call(1, None, None, B[5:])),
    ],
    "one index, new ids, whole arguments": [
        tc(call(0, "c1", "read", A)),
        tc(call(0, "c2", "read", B)),
        tc(call(0, "c3", "read", C)),
    ],
    "one index in one chunk": [
        tc(call(0, "c1", "read", A), call(0, "c2", "read", B), call(0, "c3", "read", C))
    ],
    "one index, new ids, arguments in pieces": [
        piece
        for key, _, arguments in THREE
        for piece in (
            tc(call(0, key, "read", "")),
            tc(call(0, None, None, arguments[:3])),
            tc(call(0, None, None, arguments[3:])),
        )
    ],
    "no index": [
        tc(call(None, "c1", "read", A), call(None, "c2", "read", B)),
        tc(call(None, "c3", "read", C)),
    ],
    "no index, in pieces": [
        piece
        for key, _, arguments in THREE
        for piece in (
            tc(call(None, key, "read", arguments[:3])),
            tc(call(None, None, None, arguments[3:])),
        )
    ],
    "no index, the id on each piece": [
        piece
        for key, _, arguments in THREE
        for piece in (
            tc(call(None, key, "read", arguments[:3])),
            tc(call(None, key, None, arguments[3:])),
        )
    ],
    "id and name on every piece": [
        piece
        for i, (key, name, arguments) in enumerate(THREE)
        for piece in (tc(call(i, key, name, arguments[:3])), tc(call(i, key, name, arguments[3:])))
    ],
    "null and empty members": [
        piece
        for i, (key, name, arguments) in enumerate(THREE)
        for piece in (
            tc(
                {
                    "index": i,
                    "id": key,
                    "type": "function",
                    "function": {"name": name, "arguments": None},
                }
            ),
            tc(
                {
                    "index": i,
                    "id": "",
                    "type": None,
                    "function": {"name": "", "arguments": arguments},
                }
            ),
            tc({"index": i, "function": None}, None),
        )
    ],
    "arguments as an object": [
        tc(call(i, key, name, json.loads(arguments)))
        for i, (key, name, arguments) in enumerate(THREE)
    ],
}


@pytest.mark.parametrize("parts", CALL_DIALECTS.values(), ids=CALL_DIALECTS)
@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
def test_every_dialect_of_calls_gives_each_call_its_own_arguments(parts, reason):
    text, reasoning, calls, finish = fold(run(*parts, f(reason), DONE))
    assert (text, reasoning, calls) == ("", "", THREE)
    assert finish.reason == "tool_calls"


IDLESS = {
    "one index and no ids": [tc(call(0, None, "read", x)) for x in (A, B, C)],
    "empty ids": [tc(call(0, "", "read", x)) for x in (A, B, C)],
    "neither index nor id": [tc(call(None, None, "read", x)) for x in (A, B, C)],
    "name first, arguments later": [
        piece
        for x in (A, B, C)
        for piece in (tc(call(0, None, "read", x[:2])), tc(call(0, None, None, x[2:])))
    ],
    "the name on each piece": [
        piece
        for x in (A, B, C)
        for piece in (tc(call(0, None, "read", x[:2])), tc(call(0, None, "read", x[2:])))
    ],
    "a closing piece with the name": [
        piece
        for x in (A, B, C)
        for piece in (tc(call(0, None, "read", x)), tc(call(0, None, "read", "")))
    ],
    "the legacy member": [d(function_call={"name": "read", "arguments": x}) for x in (A, B, C)],
}


@pytest.mark.parametrize("parts", IDLESS.values(), ids=IDLESS)
def test_calls_without_ids_are_told_apart_and_get_ids(parts):
    _, _, calls, finish = fold(run(*parts, f("stop"), DONE))
    assert [(name, arguments) for _, name, arguments in calls] == [("read", x) for x in (A, B, C)]
    assert len({key for key, _, _ in calls}) == 3
    assert all(key.startswith("call_") for key, _, _ in calls)
    assert finish.reason == "tool_calls"


def test_different_tools_without_ids_are_different_calls():
    _, _, calls, _ = fold(
        run(tc(call(0, None, "now", "")), tc(call(0, None, "read", A)), f("stop"))
    )
    assert [entry[1:] for entry in calls] == [("now", ""), ("read", A)]


def test_an_id_that_is_new_on_each_piece_does_not_split_a_call():
    pieces = [
        tc(call(0, "x1", "read", A[:3])),
        tc(call(0, "x2", None, A[3:6])),
        tc(call(0, "x3", "", A[6:])),
    ]
    assert fold(run(*pieces, tc(call(0, "x4", None, "")), f("stop")))[2] == [("x1", "read", A)]


def test_a_legacy_call_in_pieces_is_one_call():
    deltas = run(
        d(function_call={"name": "read", "arguments": ""}),
        d(function_call={"arguments": A[:4]}),
        d(function_call={"arguments": A[4:]}),
        f("function_call"),
    )
    assert [entry[1:] for entry in fold(deltas)[2]] == [("read", A)]


def test_a_late_id_or_name_stays_with_its_call():
    deltas = run(tc(call(0, None, "read", A[:4])), tc(call(0, "c9", None, A[4:])), f("stop"))
    assert [entry[1:] for entry in fold(deltas)[2]] == [("read", A)]
    deltas = run(tc(call(0, "c1", None, None)), tc(call(0, None, "read", A)), f("stop"))
    assert fold(deltas)[2] == [("c1", "read", A)]


def test_cut_arguments_keep_their_words_and_the_length():
    deltas = run(tc(call(0, "c1", "write", '{"path":"a","conte')), f("length"), DONE)
    assert fold(deltas) == (
        "",
        "",
        [("c1", "write", '{"path":"a","conte')],
        Finish(reason="length", model="m", origin="here"),
    )


def test_long_arguments_in_many_pieces_take_linear_work():
    pieces = [tc(call(0, None, "write", '{"x":"'))]
    pieces += [tc(call(0, None, "write", "abcdefgh")) for _ in range(20_000)]
    [(_, _, arguments)] = fold(run(*pieces, tc(call(0, None, None, '"}')), f("stop")))[2]
    assert json.loads(arguments) == {"x": "abcdefgh" * 20_000}


def test_what_gemini_attaches_to_a_call_is_kept_as_opaque_reasoning():
    extra = {"google": {"thought_signature": "c2ln"}}
    [opaque, begun, _] = run(tc({**call(0, "c1", "read", A), "extra_content": extra}), f("stop"))
    assert json.loads(opaque.opaque) == {"call": "c1", "extra_content": extra}
    assert (opaque.text, begun.id) == ("", "c1")


ERRORS = {
    "object": ({"error": {"message": "boom", "code": 429}}, 429, "rate_limited", True),
    "string": ({"error": "boom"}, 500, "provider_server", True),
    "code as text": ({"error": {"message": "boom", "code": "503"}}, 503, "overloaded", True),
    "error_type": (
        {"error_type": "context_length_exceeded", "error_message": "boom"},
        400,
        "context_length_exceeded",
        False,
    ),
    "anthropic": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
        529,
        "overloaded",
        True,
    ),
    "vllm": (
        {"object": "error", "message": "boom", "type": "BadRequestError", "code": 400},
        400,
        "provider_request",
        False,
    ),
    "bare code": ({"code": "Throttling.RateQuota", "message": "boom"}, 429, "rate_limited", True),
    "detail": ({"detail": "boom"}, 500, "provider_server", True),
    "template": (
        {"error": {"message": "boom: Error rendering prompt with jinja template"}},
        400,
        "provider_request",
        False,
    ),
    "beside choices": (
        {"choices": [{"delta": {"content": ""}}], "error": {"message": "boom", "code": 502}},
        502,
        "provider_server",
        True,
    ),
    "in the choice": (
        {"choices": [{"delta": {}, "error": {"message": "boom", "code": 502}}]},
        502,
        "provider_server",
        True,
    ),
}


@pytest.mark.parametrize(("value", "status", "code", "retryable"), ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("before", [(), (d(role="assistant", content=""),)])
def test_an_error_in_the_stream_is_raised_in_whatever_shape_it_comes(
    value, status, code, retryable, before
):
    with pytest.raises(ProviderStatusError, match="boom") as raised:
        run(*before, event(value), DONE)
    error = raised.value
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    if "choices" not in value:
        with pytest.raises(ProviderStatusError, match="boom"):
            decode_answer(orjson.dumps(value), "here")


def test_an_error_event_with_the_status_in_a_comment_is_a_rate_limit():
    stream = (
        b"id:1\nevent:error\n:HTTP_STATUS/429\n"
        b'data:{"code":"Throttling.AllocationQuota","message":"x"}\n\n'
    )
    with pytest.raises(ProviderStatusError) as raised:
        run(stream)
    assert (raised.value.status, raised.value.code, raised.value.retryable) == (
        429,
        "rate_limited",
        True,
    )


@pytest.mark.parametrize(
    ("data", "status"), [(b"gone away", 500), (b'{"x":1}', 500), (b'{"request_id":"a"}', 500)]
)
def test_an_event_named_error_is_an_error_whatever_it_holds(data, status):
    with pytest.raises(ProviderStatusError) as raised:
        run(b"event: error\ndata: " + data + b"\n\n")
    assert raised.value.status == status


def test_a_finish_that_says_error_is_an_error():
    with pytest.raises(ProviderStatusError) as raised:
        run(d(content="a"), f("error"), DONE)
    assert raised.value.retryable


def test_deltas_before_an_error_of_the_same_read_are_delivered_first():
    sse, decoder = Decoder(), StreamDecoder("here")
    events = sse.feed(d(content="kept") + event({"error": {"message": "boom"}}))
    assert decoder.feed(events) == [TextDelta("kept")]
    assert decoder.done
    assert decoder.has_content
    for close in (decoder.finish, lambda: decoder.feed([])):
        with pytest.raises(ProviderStatusError, match="boom"):
            close()


def test_broken_json_is_a_protocol_error():
    with pytest.raises(ProviderProtocolError) as raised:
        run(b'data: {"choices": [{\n\n')
    assert raised.value.code == "provider_protocol"


@pytest.mark.parametrize("parts", [(), (d(content="a"),), (tc(call(0, "c1", "read", A)),)])
def test_a_stream_that_breaks_off_is_incomplete(parts):
    with pytest.raises(ProviderProtocolError) as raised:
        run(*parts)
    assert raised.value.code == "provider_incomplete"


def test_lone_surrogates_and_bad_bytes_become_replacement_characters():
    stream = (
        rb'data: {"model":"m","choices":[{"delta":{"content":"hi \ud83d there \ud83d\ude00"}}]}'
    )
    text, *_ = fold(run(stream + b"\n\n", f("stop")))
    assert text == "hi \ufffd there \U0001f600"
    stream = b'data: {"model":"m","choices":[{"delta":{"content":"a\xffb"}}]}\n\n'
    assert fold(run(stream, f("stop")))[0] == "a\ufffdb"


def test_content_and_done_are_told_while_the_stream_runs():
    sse, decoder = Decoder(), StreamDecoder("here")
    steps = [
        b": ping\n\n",
        event({}),
        d(role="assistant", content=""),
        d(reasoning="x"),
        f("stop"),
        DONE,
    ]
    seen = []
    for step in steps:
        decoder.feed(sse.feed(step))
        seen.append((decoder.has_content, decoder.finished, decoder.done))
    no, content = (False, False, False), (True, False, False)
    assert seen == [no, no, no, content, (True, True, False), (True, True, True)]
    assert decoder.finish() == [STOP]
    assert decoder.finish() == []


def test_a_whole_answer_gives_the_same_deltas_as_a_stream():
    message = {
        "role": "assistant",
        "content": "Hello",
        "reasoning_content": "plan",
        "tool_calls": [call(None, "c1", "read", A), call(None, "c2", "read", B)],
    }
    body = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": U}
    assert decode_answer(orjson.dumps(body), "here") == [
        ReasoningDelta("plan"),
        TextDelta("Hello"),
        ToolCallDelta(index=0, id="c1", name="read", arguments=A),
        ToolCallDelta(index=1, id="c2", name="read", arguments=B),
        Finish(reason="tool_calls", usage=USED, model="m", origin="here"),
    ]


def test_a_stream_in_place_of_a_whole_answer_is_read():
    body = d(content="Hel") + d(content="lo") + f("stop") + DONE.rstrip()
    assert decode_answer(body, "here") == [TextDelta("Hello"), STOP]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"choices":[]}', b'{"id":"x"}'])
def test_a_body_that_is_no_answer_is_a_protocol_error(body):
    with pytest.raises(ProviderProtocolError):
        decode_answer(body, "here")


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_chunks = st.lists(
    st.one_of(
        _text.map(lambda text: d(content=text)),
        _text.map(lambda text: d(reasoning_content=text)),
        st.sampled_from(THREE).map(lambda entry: tc(call(0, *entry))),
        st.sampled_from([b": ping\n\n", event({}), d(), event({"usage": U})]),
    ),
    max_size=12,
)


@given(_chunks, st.integers(1, 60))
@settings(deadline=None)
def test_any_cut_of_a_stream_folds_to_the_same_answer(chunks, size):
    stream = [*chunks, f("stop"), DONE]
    assert fold(run(*stream, size=size)) == fold(run(*stream))


_junk = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | _text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "content",
                    "tool_calls",
                    "function",
                    "index",
                    "id",
                    "usage",
                    "text",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_junk)
@settings(deadline=None, max_examples=100)
def test_no_json_crashes_the_decoder(value):
    for parts in ([event(value)], [d(content="a"), event({"choices": [{"delta": value}]})]):
        decoder = StreamDecoder("here")
        try:
            decoder.feed(Decoder().feed(b"".join(parts)))
        except ProviderStatusError:
            continue
