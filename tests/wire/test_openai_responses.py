"""OpenAI Responses: answers, streamed and whole, from whichever events carry them."""

import json

import orjson
import pytest

from hermes.errors import ProviderProtocolError, ProviderStatusError
from hermes.events import Finish, ReasoningDelta, TextDelta, ToolCallDelta
from hermes.messages import Usage
from hermes.sse import Decoder
from hermes.wire.openai_responses import StreamDecoder, decode_answer

USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 5},
    "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 3},
}
USED = Usage(input=9, cached_input=5, output=4, reasoning=3)


def event(kind, **members):
    value = {"type": f"response.{kind}", **members}
    return f"event: response.{kind}\n".encode() + b"data: " + orjson.dumps(value) + b"\n\n"


CREATED = event("created", response={"model": "m", "status": "in_progress", "output": []})


def message(text="Hello", **members):
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content, **members}


def function(arguments='{"a":1}', call_id="c1", name="read", item_id="fc_1"):
    value = {"type": "function_call", "id": item_id, "call_id": call_id, "name": name}
    return {**value, "arguments": arguments}


def text(piece, output=0, content=0):
    return event("output_text.delta", output_index=output, content_index=content, delta=piece)


def completed(**members):
    response = {"model": "m", "status": "completed", "usage": USAGE, **members}
    return event("completed", response=response)


def run(*parts, size=0):
    stream = b"".join(parts)
    reads = [stream[i : i + size] for i in range(0, len(stream), size)] if size else [stream]
    sse, decoder, deltas = Decoder(), StreamDecoder("here"), []
    for read in reads:
        deltas += decoder.feed(sse.feed(read))
    return deltas + decoder.finish()


def finish(reason="stop", usage=USED):
    return Finish(reason=reason, usage=usage, model="m", origin="here")


FULL_TEXT = [
    CREATED,
    event("output_item.added", output_index=0, item={"type": "message", "id": "msg_1"}),
    event("content_part.added", output_index=0, content_index=0, part={"type": "output_text"}),
    text("Hel"),
    text("lo"),
    event("output_text.done", output_index=0, content_index=0, text="Hello"),
    event("content_part.done", output_index=0, content_index=0, part={"text": "Hello"}),
    event("output_item.done", output_index=0, item=message()),
]
OUTPUTS = {
    "missing": {},
    "null": {"output": None},
    "empty": {"output": []},
    "full": {"output": [message()]},
}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize("skip", [(), (3, 4), (3, 4, 5), (1,), (5, 6), (5, 6, 7), (1, 2, 5, 6, 7)])
def test_text_is_rebuilt_once_from_whatever_came(output, skip):
    parts = [part for i, part in enumerate(FULL_TEXT) if i not in skip]
    for size in (0, 1, 37):
        deltas = run(*parts, completed(**output), size=size)
        assert "".join(x.text for x in deltas if isinstance(x, TextDelta)) == "Hello"
        assert deltas[-1] == finish()


def test_text_of_the_final_object_alone_is_taken():
    assert run(completed(output=[message()])) == [TextDelta("Hello"), finish()]


def test_final_items_are_matched_whatever_their_ids_and_places():
    other = [{"type": "reasoning", "id": "r", "summary": []}, message(id="another")]
    assert run(*FULL_TEXT, completed(output=other)) == [TextDelta("Hello"), finish()]


def test_events_that_carry_only_an_item_id_are_told_apart():
    parts = [
        event("output_text.delta", item_id="msg_1", delta="Hello"),
        event("output_item.added", item=function(arguments="")),
        event("function_call_arguments.delta", item_id="fc_1", delta='{"a":1}'),
        event("output_item.done", item=function()),
        event("output_item.done", item=message()),
    ]
    assert run(CREATED, *parts, completed()) == [
        TextDelta("Hello"),
        ToolCallDelta(index=0, id="c1", name="read"),
        ToolCallDelta(index=0, arguments='{"a":1}'),
        finish("tool_calls"),
    ]


def test_events_without_place_and_id_are_items_in_their_order():
    parts = []
    for call_id in ("c1", "c2"):
        bare = {**function(call_id=call_id), "id": None}
        parts += [
            event("output_item.added", item={**bare, "arguments": ""}),
            event("function_call_arguments.delta", delta='{"a"'),
            event("function_call_arguments.delta", delta=":1}"),
            event("output_item.done", item=bare),
        ]
    outputs = [function(), function(call_id="c2")]
    deltas = run(CREATED, *parts, completed(output=outputs))
    assert calls_of(deltas) == [("c1", "read", '{"a":1}'), ("c2", "read", '{"a":1}')]


def calls_of(deltas):
    calls = {}
    for x in deltas:
        if isinstance(x, ToolCallDelta):
            old = calls.get(x.index, ("", "", ""))
            calls[x.index] = (old[0] + x.id, old[1] + x.name, old[2] + x.arguments)
    return list(calls.values())


FULL_CALL = [
    CREATED,
    event("output_item.added", output_index=0, item=function(arguments="")),
    event("function_call_arguments.delta", output_index=0, item_id="fc_1", delta='{"a"'),
    event("function_call_arguments.delta", output_index=0, item_id="fc_1", delta=":1}"),
    event("function_call_arguments.done", output_index=0, item_id="fc_1", arguments='{"a":1}'),
    event("output_item.done", output_index=0, item=function()),
]


@pytest.mark.parametrize(
    "output", [{}, {"output": None}, {"output": []}, {"output": [function(item_id="x")]}]
)
@pytest.mark.parametrize("skip", [(), (1,), (1, 4), (2, 3), (2, 3, 4), (4, 5)])
def test_a_call_is_rebuilt_once_from_whatever_came(output, skip):
    parts = [part for i, part in enumerate(FULL_CALL) if i not in skip]
    deltas = run(*parts, completed(**output))
    assert calls_of(deltas) == [("c1", "read", '{"a":1}')]
    assert deltas[-1] == finish("tool_calls")


def test_parallel_calls_interleave():
    parts = [
        event("output_item.added", output_index=1, item=function(arguments="")),
        event("output_item.added", output_index=2, item=function("", "c2", "now", "fc_2")),
        event("function_call_arguments.delta", output_index=2, delta='{"b"'),
        event("function_call_arguments.delta", output_index=1, delta='{"a":1}'),
        event("function_call_arguments.delta", output_index=2, delta=":2}"),
    ]
    deltas = run(CREATED, *parts, completed())
    assert calls_of(deltas) == [("c1", "read", '{"a":1}'), ("c2", "now", '{"b":2}')]


def test_reasoning_parts_are_paragraphs_and_encrypted_content_is_kept():
    summary = [{"type": "summary_text", "text": t} for t in ("one", "two")]
    item = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "E"}
    parts = [
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="o"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="ne"),
        event("reasoning_summary_text.done", output_index=0, summary_index=0, text="one"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="two"),
        event("output_item.done", output_index=0, item=item),
        text("42", output=1),
    ]
    thought, opaque, answer, end = run(CREATED, *parts, completed(output=[item, message("42")]))
    assert (thought, answer, end) == (ReasoningDelta("one\n\ntwo"), TextDelta("42"), finish())
    assert json.loads(opaque.opaque) == {k: v for k, v in item.items() if k != "type"}


@pytest.mark.parametrize("kind", ["reasoning_text.delta", "reasoning_summary_text.delta"])
def test_reasoning_is_never_text(kind):
    deltas = run(
        CREATED, event(kind, output_index=0, delta="plan"), text("42", output=1), completed()
    )
    assert deltas == [ReasoningDelta("plan"), TextDelta("42"), finish()]


def test_reasoning_of_a_done_item_is_taken_if_no_delta_brought_it():
    item = {"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": "plan"}]}
    assert run(event("output_item.done", output_index=0, item=item), completed())[
        0
    ] == ReasoningDelta("plan")


def test_a_refusal_is_the_answer():
    parts = [
        event("refusal.delta", output_index=0, content_index=0, delta="No"),
        event("refusal.done", output_index=0, content_index=0, refusal="No"),
    ]
    assert run(CREATED, *parts, completed()) == [TextDelta("No"), finish()]
    done = event("refusal.done", output_index=0, content_index=0, refusal="No")
    assert run(CREATED, done, completed()) == [TextDelta("No"), finish()]


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "content_filter"),
        ({"reason": "new"}, "length"),
        (None, "length"),
    ],
)
def test_an_incomplete_response_says_why(details, reason):
    response = {"model": "m", "usage": USAGE, "incomplete_details": details}
    assert run(CREATED, text("a"), event("incomplete", response=response))[-1] == finish(reason)
    body = {**response, "status": "incomplete", "output": [message("a")]}
    assert decode_answer(orjson.dumps(body), "here") == [TextDelta("a"), finish(reason)]


ERRORS = {
    "failed": (
        event(
            "failed",
            response={"status": "failed", "error": {"code": "server_error", "message": "boom"}},
        ),
        (500, "provider_server", True),
    ),
    "failed by rate": (
        event(
            "failed",
            response={
                "status": "failed",
                "error": {"code": "rate_limit_exceeded", "message": "boom, try again in 2s"},
            },
        ),
        (429, "rate_limited", True),
    ),
    "bare error": (
        b'data: {"type":"error","code":"context_length_exceeded","message":"boom"}\n\n',
        (400, "context_length_exceeded", False),
    ),
    "wrapped error": (
        b'data: {"type":"error","error":{"type":"overloaded_error","message":"boom"}}\n\n',
        (529, "overloaded", True),
    ),
    "chat's error": (
        b'data: {"error":{"message":"boom","code":429}}\n\n',
        (429, "rate_limited", True),
    ),
    "text": (b"event: error\ndata: boom\n\n", (500, "provider_server", True)),
}


@pytest.mark.parametrize(("part", "expected"), ERRORS.values(), ids=ERRORS)
def test_an_error_in_the_stream_is_raised(part, expected):
    with pytest.raises(ProviderStatusError, match="boom") as raised:
        run(CREATED, part)
    assert (raised.value.status, raised.value.code, raised.value.retryable) == expected


def test_a_failure_without_words_is_a_failure():
    for response in ({"status": "failed"}, {"status": "failed", "error": None}, {}):
        with pytest.raises(ProviderStatusError):
            run(event("failed", response=response))


@pytest.mark.parametrize("parts", [(), (CREATED,), FULL_TEXT, FULL_CALL])
def test_a_stream_that_breaks_off_is_incomplete(parts):
    with pytest.raises(ProviderProtocolError) as raised:
        run(*parts)
    assert raised.value.code == "provider_incomplete"


def test_events_without_a_type_go_by_their_name():
    stream = (
        b'event: response.output_text.delta\ndata: {"delta":"a"}\n\n'
        b'event: response.completed\ndata: {"response":{"model":"m"}}\n\n'
    )
    assert run(stream) == [TextDelta("a"), finish(usage=Usage())]


def test_a_whole_answer_gives_the_same_deltas_as_a_stream():
    output = [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "plan"}]},
        message(),
        function(),
        {"type": "brand_new"},
        None,
    ]
    body = {"model": "m", "status": "completed", "output": output, "usage": USAGE, "error": None}
    assert decode_answer(orjson.dumps(body), "here") == [
        ReasoningDelta("plan"),
        TextDelta("Hello"),
        ToolCallDelta(index=0, id="c1", name="read"),
        ToolCallDelta(index=0, arguments='{"a":1}'),
        finish("tool_calls"),
    ]
    assert decode_answer(b"".join(FULL_TEXT) + completed(), "here")[0] == TextDelta("Hello")


def test_a_body_that_is_no_answer_is_an_error():
    with pytest.raises(ProviderStatusError):
        decode_answer(b'{"error":{"message":"boom"}}', "here")
    with pytest.raises(ProviderStatusError):
        decode_answer(b'{"status":"failed","error":{"code":"server_error","message":"x"}}', "here")
    for body in (b"", b"{}", b"[]", b"<html>"):
        with pytest.raises(ProviderProtocolError):
            decode_answer(body, "here")


@pytest.mark.parametrize(
    "junk", [None, [], "x", 3, {"output_index": []}, {"item": []}, {"delta": {}}]
)
@pytest.mark.parametrize(
    "kind",
    [
        "output_text.delta",
        "output_item.added",
        "output_item.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "reasoning_text.delta",
        "in_progress",
    ],
)
def test_no_json_crashes_the_decoder(kind, junk):
    members = (
        junk if isinstance(junk, dict) else {"item": junk, "delta": junk, "content_index": junk}
    )
    assert run(CREATED, event(kind, **members), completed())[-1].model == "m"
