"""Requests: one conversation in the words of each protocol, options and quirks respected."""

from dataclasses import replace

import orjson
import pytest

from hermes.messages import (
    ImagePart,
    Message,
    ModelOptions,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    text_message,
)
from hermes.wire import anthropic, openai_chat, openai_responses
from hermes.wire.call_ids import fitting_id
from hermes.wire.quirks import Quirks

PNG = "data:image/png;base64,aGk="
SPEC = ToolSpec(name="read", description="Reads.", parameters={"type": "object"})
CALLS = (
    ToolCall(id="c1", name="read", arguments='{"path":"a"}'),
    ToolCall(id="functions.read:1", name="read", arguments=""),
)
RESULTS = Message(
    role="tool",
    parts=(
        ToolResult(call_id="c1", name="read", text="A"),
        ToolResult(call_id="functions.read:1", name="read", text="no", is_error=True),
    ),
)
TALK = (
    text_message("system", "Be brief."),
    Message(role="user", parts=(TextPart(text="what "), TextPart(text="is it?"))),
    Message(role="assistant", parts=CALLS),
    RESULTS,
    text_message("assistant", "It is A."),
    Message(role="user", parts=(TextPart(text="and this?"), ImagePart(url=PNG, detail="low"))),
)
ODD = fitting_id("functions.read:1")
HERE = Quirks(origin="here")


def ask(*messages, stream=True, tools=(), **options):
    return ModelRequest(
        model="m",
        messages=messages or (text_message("user", "hi"),),
        tools=tools,
        options=ModelOptions(**options),
        stream=stream,
    )


def test_chat_messages():
    body = openai_chat.encode_request(ask(*TALK, tools=(SPEC,)), HERE)
    assert body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads.",
                    "parameters": {"type": "object"},
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "what is it?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path":"a"}'},
                    },
                    {
                        "id": "functions.read:1",
                        "type": "function",
                        "function": {"name": "read", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "A"},
            {"role": "tool", "tool_call_id": "functions.read:1", "content": "no"},
            {"role": "assistant", "content": "It is A."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and this?"},
                    {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                ],
            },
        ],
    }


def test_anthropic_messages():
    body = anthropic.encode_request(ask(*TALK, tools=(SPEC,)), HERE)
    assert body == {
        "model": "m",
        "max_tokens": 8192,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [
            {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}},
        ],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "what "}, {"type": "text", "text": "is it?"}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": ODD, "name": "read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "A"},
                    {
                        "type": "tool_result",
                        "tool_use_id": ODD,
                        "content": "no",
                        "is_error": True,
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It is A."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and this?"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                    },
                ],
            },
        ],
    }


def test_responses_items():
    body = openai_responses.encode_request(ask(*TALK, tools=(SPEC,)), HERE)
    assert body == {
        "model": "m",
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "what "},
                    {"type": "input_text", "text": "is it?"},
                ],
            },
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "read",
                "arguments": '{"path":"a"}',
            },
            {
                "type": "function_call",
                "call_id": "functions.read:1",
                "name": "read",
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": "c1", "output": "A"},
            {"type": "function_call_output", "call_id": "functions.read:1", "output": "no"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It is A."}],
            },
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "and this?"},
                    {"type": "input_image", "image_url": PNG, "detail": "low"},
                ],
            },
        ],
    }


CODECS = {"chat": openai_chat, "anthropic": anthropic, "responses": openai_responses}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_every_body_is_json(codec):
    assert orjson.dumps(codec.encode_request(ask(*TALK, tools=(SPEC,)), HERE))


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_options_that_are_open_send_no_key(codec):
    body = codec.encode_request(ask(stream=False), HERE)
    assert body.keys() <= {"model", "messages", "input", "stream", "store", "include", "max_tokens"}
    assert not body.get("stream")


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_set_options_and_extra_reach_the_body_and_dropped_wins(codec):
    request = ask(temperature=0.2, top_p=0.9, extra={"top_p": 0.5, "x": {"a": 1, "b": 2}})
    body = codec.encode_request(request, replace(HERE, dropped=frozenset({"x.a", "y.z", "q"})))
    assert (body["temperature"], body["top_p"], body["x"]) == (0.2, 0.5, {"b": 2})
    body = codec.encode_request(request, replace(HERE, dropped=frozenset({"temperature", "x"})))
    assert "temperature" not in body
    assert "x" not in body


def test_chat_options():
    body = openai_chat.encode_request(
        ask(
            tools=(SPEC,),
            max_output_tokens=5,
            stop=("a",),
            seed=7,
            reasoning_effort="high",
            tool_choice="read",
            parallel_tool_calls=False,
            response_format={"type": "json_object"},
        ),
        Quirks(max_tokens_key="max_completion_tokens", send_stream_options=False),
    )
    del body["messages"], body["tools"], body["model"]
    assert body == {
        "stream": True,
        "max_completion_tokens": 5,
        "stop": ["a"],
        "seed": 7,
        "reasoning_effort": "high",
        "tool_choice": {"type": "function", "function": {"name": "read"}},
        "parallel_tool_calls": False,
        "response_format": {"type": "json_object"},
    }


def test_chat_quirks():
    quirks = Quirks(
        origin="here",
        system_role="developer",
        required_choice="any",
        null_content=False,
        name_in_results=True,
        effort_as_object=True,
        reasoning_field="reasoning_content",
    )
    thought = ReasoningPart(text="hm", origin="here")
    talk = (
        text_message("system", "s"),
        Message(role="assistant", parts=(thought, CALLS[0])),
        RESULTS,
    )
    request = ask(*talk, tools=(SPEC,), tool_choice="required", reasoning_effort="low")
    body = openai_chat.encode_request(request, quirks)
    assert body["tool_choice"] == "any"
    assert body["reasoning"] == {"effort": "low"}
    assert "reasoning_effort" not in body
    system, assistant, result, _ = body["messages"]
    assert system["role"] == "developer"
    assert (assistant["content"], assistant["reasoning_content"]) == ("", "hm")
    assert result["name"] == "read"


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_tool_options_without_tools_are_not_sent(codec):
    body = codec.encode_request(ask(tool_choice="required", parallel_tool_calls=True), HERE)
    assert "tool_choice" not in body
    assert "parallel_tool_calls" not in body


def test_effort_none_means_off():
    assert (
        openai_chat.encode_request(ask(reasoning_effort="none"), HERE)["reasoning_effort"] == "none"
    )
    left_out = openai_chat.encode_request(ask(reasoning_effort="none"), Quirks(effort_none=""))
    assert "reasoning_effort" not in left_out
    off = openai_responses.encode_request(ask(reasoning_effort="none"), HERE)
    assert off["reasoning"] == {"effort": "none"}
    assert "thinking" not in anthropic.encode_request(ask(reasoning_effort="none"), HERE)


def test_responses_options():
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True}
    body = openai_responses.encode_request(
        ask(
            tools=(SPEC,),
            max_output_tokens=5,
            reasoning_effort="high",
            tool_choice="read",
            response_format={"type": "json_schema", "json_schema": schema},
        ),
        HERE,
    )
    assert body["max_output_tokens"] == 5
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["tool_choice"] == {"type": "function", "name": "read"}
    assert body["text"] == {"format": {"type": "json_schema", **schema}}


def test_later_instructions_stay_in_their_place():
    talk = (text_message("system", "a"), text_message("user", "b"), text_message("system", "c"))
    body = openai_responses.encode_request(ask(*talk), HERE)
    assert (body["instructions"], [item["role"] for item in body["input"]]) == (
        "a",
        ["user", "system"],
    )
    roles = [m["role"] for m in openai_chat.encode_request(ask(*talk), HERE)["messages"]]
    assert roles == ["system", "user", "system"]
    system = anthropic.encode_request(ask(*talk), HERE)["system"]
    assert [block["text"] for block in system] == ["a", "c"]


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "read"}, {"type": "tool", "name": "read"}),
        ({"parallel_tool_calls": True}, None),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"parallel_tool_calls": False, "tool_choice": "required"},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"parallel_tool_calls": False, "tool_choice": "none"}, {"type": "none"}),
    ],
)
def test_anthropic_tool_choice(options, choice):
    body = anthropic.encode_request(ask(tools=(SPEC,), **options), HERE)
    assert body.get("tool_choice") == choice


def think(model, effort, quirks=HERE, messages=(), **options):
    request = replace(ask(*messages, reasoning_effort=effort, **options), model=model)
    body = anthropic.encode_request(request, quirks)
    names = ("thinking", "output_config", "max_tokens", "temperature")
    return {name: body[name] for name in names if name in body}


def test_older_anthropic_models_think_within_a_budget():
    budget = {"type": "enabled", "budget_tokens": 16384}
    for model in (
        "claude-sonnet-4-5",
        "claude-3-7-sonnet-latest",
        "claude-opus-4-20250514",
        "kimi",
    ):
        assert think(model, "high", temperature=0.1) == {
            "thinking": budget,
            "max_tokens": 8192 + 16384,
        }
    assert think("kimi", "high", max_output_tokens=4096) == {
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "max_tokens": 4096,
    }
    assert think("kimi", "high", max_output_tokens=1000) == {"max_tokens": 1000}


def test_newer_anthropic_models_think_by_effort():
    for model in (
        "claude-sonnet-4-6",
        "claude-opus-4-7",
        "claude-sonnet-5",
        "claude-fable-5-1",
        "claude-opus-4-10",
    ):
        assert think(model, "high", temperature=0.1) == {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "high"},
            "max_tokens": 8192 + 16384,
        }
    assert think("claude-opus-4-6", "xhigh")["output_config"] == {"effort": "max"}
    assert think("claude-sonnet-5", "minimal")["output_config"] == {"effort": "low"}
    assert think("claude-sonnet-5", "none")["thinking"] == {"type": "disabled"}
    assert "thinking" not in think("claude-sonnet-5", None)
    told = replace(HERE, adaptive_thinking=False)
    assert think("claude-sonnet-5", "high", told)["thinking"]["type"] == "enabled"


def test_anthropic_does_not_think_with_a_forced_tool():
    forced = think("claude-sonnet-5", "high", tools=(SPEC,), tool_choice="required")
    assert "thinking" not in forced


def test_anthropic_budget_thinking_is_off_behind_calls_whose_thinking_is_not_ours():
    user = text_message("user", "hi")
    foreign = Message(
        role="assistant",
        parts=(ReasoningPart(text="x", signature="s", origin="there"), CALLS[0]),
    )
    own = Message(
        role="assistant",
        parts=(ReasoningPart(text="x", signature="s", origin="here"), CALLS[0]),
    )
    assert "thinking" not in think("kimi", "high", messages=(user, foreign, RESULTS))
    assert "thinking" in think("kimi", "high", messages=(user, own, RESULTS))
    stripped = replace(HERE, strip_reasoning=True)
    assert "thinking" not in think("kimi", "high", stripped, messages=(user, own, RESULTS))
    answered = (user, foreign, RESULTS, text_message("assistant", "ok"), user)
    assert "thinking" in think("kimi", "high", messages=answered)


THOUGHT = Message(
    role="assistant",
    parts=(
        ReasoningPart(text="foreign", signature="f", origin="there"),
        ReasoningPart(text="hm", signature="sig", origin="here"),
        ReasoningPart(text="", opaque="b3BhcXVl", origin="here"),
        ReasoningPart(text="unsigned", origin="here"),
        TextPart(text="ok"),
    ),
)


def test_anthropic_gets_its_own_signed_thinking_back_and_no_other():
    body = anthropic.encode_request(ask(text_message("user", "hi"), THOUGHT), HERE)
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "ok"},
    ]
    stripped = anthropic.encode_request(
        ask(text_message("user", "hi"), THOUGHT), replace(HERE, strip_reasoning=True)
    )
    assert stripped["messages"][1]["content"] == [{"type": "text", "text": "ok"}]


def test_responses_get_their_own_encrypted_reasoning_back_and_no_other():
    kept = '{"id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"E"}'
    parts = (
        ReasoningPart(text="hm", opaque=kept, origin="here"),
        ReasoningPart(text="", opaque=kept, origin="there"),
        ReasoningPart(text="", opaque="junk", origin="here"),
        CALLS[0],
    )
    talk = (text_message("user", "hi"), Message(role="assistant", parts=parts))
    body = openai_responses.encode_request(ask(*talk), HERE)
    assert [item["type"] for item in body["input"]] == ["message", "reasoning", "function_call"]
    assert body["input"][1] == {"type": "reasoning", **orjson.loads(kept)}
    stripped = openai_responses.encode_request(ask(*talk), replace(HERE, strip_reasoning=True))
    assert [item["type"] for item in stripped["input"]] == ["message", "function_call"]
    assert "include" not in stripped


def test_chat_never_sends_reasoning_unless_the_endpoint_wants_its_own():
    talk = ask(text_message("user", "hi"), THOUGHT)
    assert openai_chat.encode_request(talk, HERE)["messages"][1] == {
        "role": "assistant",
        "content": "ok",
    }
    wants = replace(HERE, reasoning_field="reasoning")
    assert openai_chat.encode_request(talk, wants)["messages"][1]["reasoning"] == "hmunsigned"
    stripped = replace(wants, strip_reasoning=True)
    assert "reasoning" not in openai_chat.encode_request(talk, stripped)["messages"][1]


def test_chat_sends_back_what_an_endpoint_attached_to_a_call():
    opaque = '{"call":"c1","extra_content":{"google":{"thought_signature":"s"}}}'
    for origin, expected in (("here", {"google": {"thought_signature": "s"}}), ("there", None)):
        message = Message(
            role="assistant",
            parts=(ReasoningPart(text="", opaque=opaque, origin=origin), *CALLS),
        )
        first, second = openai_chat.encode_request(ask(message), HERE)["messages"][0]["tool_calls"]
        assert first.get("extra_content") == expected
        assert "extra_content" not in second


def test_pictures_from_tools():
    image = ImagePart(url="https://x/y.png")
    result = ToolResult(call_id="c1", name="shot", text="done", images=(image,))
    talk = (
        Message(role="assistant", parts=(CALLS[0],)),
        Message(role="tool", parts=(result,)),
    )
    chat = openai_chat.encode_request(ask(*talk), HERE)["messages"]
    assert [m["role"] for m in chat] == ["assistant", "tool", "user"]
    assert chat[2]["content"][1] == {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    block = anthropic.encode_request(ask(*talk), HERE)["messages"][1]["content"][0]
    assert block["content"] == [
        {"type": "text", "text": "done"},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    ]
    item = openai_responses.encode_request(ask(*talk), HERE)["input"][1]
    assert item["output"] == [
        {"type": "input_text", "text": "done"},
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
    ]


def test_anthropic_merges_neighbours_and_leaves_out_what_is_empty():
    talk = (
        text_message("user", "a"),
        text_message("user", ""),
        text_message("user", "b"),
        text_message("assistant", " "),
        text_message("assistant", "c"),
        Message(role="assistant", parts=CALLS[:1]),
        RESULTS,
        text_message("user", "d"),
    )
    messages = anthropic.encode_request(ask(*talk), HERE)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result"] * 2 + ["text"]


def test_anthropic_keeps_arguments_that_are_no_object():
    for text in ('{"a":', "[1]", '"x"'):
        talk = ask(Message(role="assistant", parts=(replace(CALLS[0], arguments=text),)))
        [block] = anthropic.encode_request(talk, HERE)["messages"][0]["content"]
        assert block["input"] == {"arguments": text}


def test_an_assistant_message_with_nothing_to_show_is_left_out():
    hidden = Message(role="assistant", parts=(ReasoningPart(text="x", origin="there"),))
    talk = (text_message("user", "a"), hidden, text_message("user", "b"))
    assert len(openai_chat.encode_request(ask(*talk), HERE)["messages"]) == 2
    assert len(anthropic.encode_request(ask(*talk), HERE)["messages"]) == 1
    assert len(openai_responses.encode_request(ask(*talk), HERE)["input"]) == 2


def test_ids_of_calls_are_made_to_fit_and_stay_paired():
    assert fitting_id("toolu_01-x") == "toolu_01-x"
    assert fitting_id("abc", exact_length=3) == "abc"
    for odd in ("functions.read:1", "", "é", "x" * 65):
        made = fitting_id(odd, max_length=64)
        assert made == fitting_id(odd, max_length=64)
        assert made.startswith("call_")
        assert len(made) <= 40
    long = "call_" + "x" * 80
    talk = (
        Message(role="assistant", parts=(replace(CALLS[0], id=long),)),
        Message(role="tool", parts=(ToolResult(call_id=long, name="read", text="A"),)),
    )
    for quirks, length in ((HERE, 29), (replace(HERE, call_id_length=9), 9)):
        assistant, result = openai_chat.encode_request(ask(*talk), quirks)["messages"]
        assert assistant["tool_calls"][0]["id"] == result["tool_call_id"]
        assert len(result["tool_call_id"]) == length
    call, output = openai_responses.encode_request(ask(*talk), HERE)["input"]
    assert call["call_id"] == output["call_id"]
    assert len(call["call_id"]) == 29
