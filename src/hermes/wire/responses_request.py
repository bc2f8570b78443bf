"""OpenAI Responses: our request as the body of theirs.

No header and no URL: the provider adds them. Nothing is stored at the endpoint: the whole
conversation is sent each time, with the endpoint's own reasoning in the form it encrypted.
"""

from collections.abc import Iterable, Sequence
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
from hermes.wire.jsonvalue import as_object, parse_or_none
from hermes.wire.quirks import Quirks, finish_body

_MAX_CALL_ID = 64


def encode_request(request: ModelRequest, quirks: Quirks) -> dict[str, Any]:
    """Return the JSON body of ``request``; ``stop`` and ``seed`` do not exist in this protocol."""
    leading, rest = _split_instructions(request.messages)
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in rest for item in _items(message, quirks)],
        "store": False,
        "stream": request.stream,
    }
    if not quirks.strip_reasoning:
        body["include"] = ["reasoning.encrypted_content"]
    if leading:
        body["instructions"] = leading
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    body |= _options(request.options, quirks, has_tools=bool(request.tools))
    return finish_body(body, request.options.extra, quirks.dropped)


def _split_instructions(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The system messages at the start as one text, and what follows them."""
    count = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    return "\n\n".join(m.text for m in messages[:count] if m.text), messages[count:]


def _options(options: ModelOptions, quirks: Quirks, *, has_tools: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "max_output_tokens": options.max_output_tokens,
        "reasoning": _reasoning(options.reasoning_effort, quirks),
        "text": _text_format(as_object(options.response_format)),
    }
    if has_tools:
        values["parallel_tool_calls"] = options.parallel_tool_calls
        values["tool_choice"] = _tool_choice(options.tool_choice, quirks)
    return {name: value for name, value in values.items() if value is not None}


def _reasoning(effort: str | None, quirks: Quirks) -> dict[str, Any] | None:
    if effort is None:
        return None
    if effort == "none":
        return {"effort": quirks.effort_none} if quirks.effort_none else None
    return {"effort": effort, "summary": "auto"}


def _text_format(response_format: dict[str, Any]) -> dict[str, Any] | None:
    """A chat ``response_format`` in the flat shape of this protocol."""
    if not response_format:
        return None
    schema = as_object(response_format.get("json_schema"))
    return {"format": {"type": "json_schema", **schema} if schema else response_format}


def _tool_choice(choice: str | None, quirks: Quirks) -> Any:
    if choice is None or choice in ("auto", "none"):
        return choice
    if choice == "required":
        return quirks.required_choice
    return {"type": "function", "name": choice}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
        "strict": False,
    }


def _items(message: Message, quirks: Quirks) -> Iterable[dict[str, Any]]:
    """The input items of a message: its words and pictures as one, anything else by itself."""
    role = quirks.system_role if message.role == "system" else message.role
    words: list[dict[str, Any]] = []
    for part in message.parts:
        item = _item(part, quirks)
        if item is None:
            words += filter(None, [_content(part, role)])
            continue
        if words:
            yield {"type": "message", "role": role, "content": words}
            words = []
        yield from filter(None, [item])
    if words:
        yield {"type": "message", "role": role, "content": words}


def _item(part: Part, quirks: Quirks) -> dict[str, Any] | None:
    """The item of a part, an empty one if it must not be sent, none if it is message content."""
    match part:
        case TextPart() | ImagePart():
            return None
        case ReasoningPart():
            own = part.origin == quirks.origin and not quirks.strip_reasoning
            return _reasoning_item(part) if own else {}
        case ToolCall():
            return {
                "type": "function_call",
                "call_id": _call_id(part.id),
                "name": part.name,
                "arguments": part.arguments or "{}",
            }
        case ToolResult():
            return _result(part)
        case _:
            assert_never(part)


def _content(part: Part, role: str) -> dict[str, Any] | None:
    if part.kind == "text" and part.text:
        return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}
    if part.kind == "image" and role != "assistant":
        return _image(part)
    return None


def _image(image: ImagePart) -> dict[str, Any]:
    return {"type": "input_image", "image_url": image.url, "detail": image.detail or "auto"}


def _result(result: ToolResult) -> dict[str, Any]:
    output: str | list[dict[str, Any]] = result.text
    if result.images:
        output = [{"type": "input_text", "text": result.text}] if result.text else []
        output += [_image(image) for image in result.images]
    return {"type": "function_call_output", "call_id": _call_id(result.call_id), "output": output}


def _call_id(call_id: str) -> str:
    return call_id if len(call_id) <= _MAX_CALL_ID else fitting_id(call_id, max_length=_MAX_CALL_ID)


def _reasoning_item(part: ReasoningPart) -> dict[str, Any]:
    """The item as the decoder kept it in ``opaque``; without encrypted content it is worthless."""
    kept = as_object(parse_or_none(part.opaque.encode()))
    if not kept.get("encrypted_content"):
        return {}
    return {"type": "reasoning", "summary": [], **kept}
