"""OpenAI Chat Completions: our request as the body of theirs.

No header and no URL: the provider adds them. Answers are in ``openai_chat``.
"""

from collections.abc import Sequence
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
from hermes.wire.call_ids import fitting_id
from hermes.wire.jsonvalue import as_object, as_text, parse_or_none
from hermes.wire.quirks import Quirks, finish_body

_MAX_CALL_ID = 40


def encode_request(request: ModelRequest, quirks: Quirks) -> dict[str, Any]:
    """Return the JSON body of ``request``.

    A parameter that the options leave open is not in it; neither is one that ``quirks`` drops.
    """
    body: dict[str, Any] = {"model": request.model, "messages": _messages(request, quirks)}
    if request.stream:
        body["stream"] = True
        if quirks.send_stream_options:
            body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    body |= _options(request.options, quirks, has_tools=bool(request.tools))
    return finish_body(body, request.options.extra, quirks.dropped)


def _options(options: ModelOptions, quirks: Quirks, *, has_tools: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        quirks.max_tokens_key: options.max_output_tokens,
        "stop": list(options.stop) or None,
        "seed": options.seed,
        "response_format": options.response_format,
    }
    if has_tools:
        values["parallel_tool_calls"] = options.parallel_tool_calls
        values["tool_choice"] = _tool_choice(options.tool_choice, quirks)
    effort = options.reasoning_effort
    if effort == "none":
        effort = quirks.effort_none or None
    if effort is not None:
        if quirks.effort_as_object:
            values["reasoning"] = {"effort": effort}
        else:
            values["reasoning_effort"] = effort
    return {name: value for name, value in values.items() if value is not None}


def _tool_choice(choice: str | None, quirks: Quirks) -> Any:
    if choice is None or choice in ("auto", "none"):
        return choice
    if choice == "required":
        return quirks.required_choice
    return {"type": "function", "function": {"name": choice}}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": dict(spec.parameters),
        },
    }


def _messages(request: ModelRequest, quirks: Quirks) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = []
    for message in request.messages:
        if message.role == "tool":
            encoded += _tool_messages(message.tool_results, quirks)
        elif message.role == "assistant":
            encoded += filter(None, [_assistant(message, quirks)])
        else:
            role = quirks.system_role if message.role == "system" else message.role
            encoded.append({"role": role, "content": _content(message.parts)})
    return encoded


def _assistant(message: Message, quirks: Quirks) -> dict[str, Any]:
    """The message, or an empty object where it holds nothing that the endpoint may see."""
    own = () if quirks.strip_reasoning else own_reasoning(message, quirks.origin)
    extras = _call_extras(own)
    calls = [_call(call, extras.get(call.id), quirks) for call in message.tool_calls]
    encoded: dict[str, Any] = {"role": "assistant", "content": message.text}
    if calls:
        if not message.text and quirks.null_content:
            encoded["content"] = None
        encoded["tool_calls"] = calls
    thought = "".join(part.text for part in own)
    if quirks.reasoning_field and thought:
        encoded[quirks.reasoning_field] = thought
    return encoded if message.text or len(encoded) > 2 else {}


def own_reasoning(message: Message, origin: str) -> tuple[ReasoningPart, ...]:
    """Return the reasoning of ``message`` that came from the endpoint ``origin``."""
    return tuple(
        part for part in message.parts if part.kind == "reasoning" and part.origin == origin
    )


def _call_extras(own: tuple[ReasoningPart, ...]) -> dict[str, Any]:
    """What the endpoint attached to its calls, by the id of the call."""
    extras: dict[str, Any] = {}
    for part in own:
        if part.opaque.startswith("{"):
            value = as_object(parse_or_none(part.opaque.encode()))
            extras[as_text(value.get("call"))] = value.get("extra_content")
    return extras


def _call(call: ToolCall, extra: Any, quirks: Quirks) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "id": _call_id(call.id, quirks),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }
    return {**encoded, "extra_content": extra} if extra else encoded


def _call_id(call_id: str, quirks: Quirks) -> str:
    """The id as it is, unless the endpoint is known to refuse it."""
    length = quirks.call_id_length
    if length or len(call_id) > _MAX_CALL_ID:
        return fitting_id(call_id, max_length=_MAX_CALL_ID, exact_length=length)
    return call_id


def _tool_messages(results: Sequence[ToolResult], quirks: Quirks) -> list[dict[str, Any]]:
    """One tool message a result; pictures follow all of them, as only a user may show some."""
    encoded: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for result in results:
        call_id = _call_id(result.call_id, quirks)
        message = {"role": "tool", "tool_call_id": call_id, "content": result.text}
        if quirks.name_in_results:
            message["name"] = result.name
        encoded.append(message)
        if result.images:
            pictures.append({"type": "text", "text": f"Images from {result.name}:"})
            pictures += [_image(image) for image in result.images]
    if pictures:
        encoded.append({"role": "user", "content": pictures})
    return encoded


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """Plain text where there is nothing but text: not every endpoint takes lists."""
    if all(part.kind == "text" for part in parts):
        return "".join(part.text for part in parts if part.kind == "text")
    encoded = (_part(part) for part in parts)
    return [part for part in encoded if part is not None]


def _part(part: Part) -> dict[str, Any] | None:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text} if part.text else None
        case ImagePart():
            return _image(part)
        case ReasoningPart() | ToolCall() | ToolResult():
            return None
        case _:
            assert_never(part)


def _image(image: ImagePart) -> dict[str, Any]:
    url = {"url": image.url, "detail": image.detail} if image.detail else {"url": image.url}
    return {"type": "image_url", "image_url": url}
