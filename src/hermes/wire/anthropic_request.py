"""Anthropic Messages: our request as the body of theirs.

No header and no URL: the provider adds them. Prompt caching is not asked for.
"""

import re
from collections.abc import Iterable
from typing import Any, assert_never

from hermes.messages import (
    ImagePart,
    Message,
    ModelOptions,
    ModelRequest,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from hermes.wire.anthropic_thinking import lay_thinking
from hermes.wire.call_ids import fitting_id
from hermes.wire.jsonvalue import as_object, parse_or_none
from hermes.wire.quirks import Quirks, finish_body

_DATA_URL = re.compile(r"data:(image/[\w.+-]+)(?:;[\w=-]+)*;base64,(.*)", re.DOTALL)


def encode_request(request: ModelRequest, quirks: Quirks) -> dict[str, Any]:
    """Return the JSON body of ``request``.

    Neighbours of one role become one message; results of tools stand first in the user message
    after their calls. Thinking is sent back only to the endpoint that it came from.
    """
    options = request.options
    body: dict[str, Any] = {
        "model": request.model,
        "messages": _messages(request.messages, quirks),
        "max_tokens": options.max_output_tokens or quirks.default_max_tokens,
        "stream": request.stream,
    }
    system = [_text(m.text) for m in request.messages if m.role == "system" and m.text]
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        choice = _tool_choice(options)
        if choice:
            body["tool_choice"] = choice
    body |= _sampling(options)
    lay_thinking(body, options, quirks)
    return finish_body(body, options.extra, quirks.dropped)


def _sampling(options: ModelOptions) -> dict[str, Any]:
    values: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop_sequences": list(options.stop) or None,
    }
    schema = as_object(as_object(options.response_format).get("json_schema")).get("schema")
    if schema:
        values["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return {name: value for name, value in values.items() if value is not None}


def _tool_choice(options: ModelOptions) -> dict[str, Any]:
    one_at_a_time = options.parallel_tool_calls is False
    choice: dict[str, Any]
    match options.tool_choice:
        case None:
            choice = {"type": "auto"} if one_at_a_time else {}
        case "auto" | "none":
            choice = {"type": options.tool_choice}
        case "required":
            choice = {"type": "any"}
        case name:
            choice = {"type": "tool", "name": name}
    if one_at_a_time and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return choice


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": dict(spec.parameters),
    }


def _messages(messages: Iterable[Message], quirks: Quirks) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        blocks = _blocks(message, quirks)
        if not blocks:
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if encoded and encoded[-1]["role"] == role:
            encoded[-1]["content"] += blocks
        else:
            encoded.append({"role": role, "content": blocks})
    return encoded


def _blocks(message: Message, quirks: Quirks) -> list[dict[str, Any]]:
    encoded = (_block(part, quirks) for part in message.parts)
    return [block for block in encoded if block is not None]


def _block(part: Part, quirks: Quirks) -> dict[str, Any] | None:
    """The block of a part; none for an empty text, which is refused, and foreign thinking."""
    match part:
        case TextPart():
            return _text(part.text) if part.text.strip() else None
        case ImagePart():
            return _image(part)
        case ToolCall():
            return {
                "type": "tool_use",
                "id": fitting_id(part.id),
                "name": part.name,
                "input": _arguments(part.arguments),
            }
        case ToolResult():
            return _result(part)
        case ReasoningPart():
            own = part.origin == quirks.origin and not quirks.strip_reasoning
            return _thinking(part) if own else None
        case _:
            assert_never(part)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _thinking(part: ReasoningPart) -> dict[str, Any] | None:
    if part.opaque:
        return {"type": "redacted_thinking", "data": part.opaque}
    if part.signature:
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return None


def _arguments(text: str) -> dict[str, Any]:
    """The arguments as an object; text that is none is kept as it was, under one name."""
    if not text.strip():
        return {}
    value = parse_or_none(text.encode())
    return as_object(value) if isinstance(value, dict) else {"arguments": text}


def _result(result: ToolResult) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = result.text
    if result.images:
        content = [_text(result.text)] if result.text.strip() else []
        content += [_image(image) for image in result.images]
    encoded: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": fitting_id(result.call_id),
        "content": content,
    }
    return {**encoded, "is_error": True} if result.is_error else encoded


def _image(image: ImagePart) -> dict[str, Any]:
    found = _DATA_URL.fullmatch(image.url)
    if found is None:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": found[1], "data": found[2]}
    return {"type": "image", "source": source}
