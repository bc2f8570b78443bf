"""Client bodies to our types: what a chat request asks, checked part by part.

Which model and session serve it is decided elsewhere.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from aiohttp import web

from hermes.errors import RequestError
from hermes.ids import is_safe_id
from hermes.messages import (
    ImagePart,
    Message,
    ModelOptions,
    Part,
    TextPart,
    ToolCall,
    ToolResult,
)

MAX_PARTS = 1000
"""Most content parts of one message."""

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off", ""})
_TEXT_KINDS = frozenset({"text", "input_text", "output_text"})
_IMAGE_KINDS = frozenset({"image_url", "input_image"})
_IGNORED = (
    "tools", "tool_choice", "functions", "function_call", "logprobs", "top_logprobs", "logit_bias",
    "frequency_penalty", "presence_penalty", "prediction", "service_tier", "web_search_options",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A chat completion as asked for.

    ``system`` is the joined system texts, ``history`` all before the input, ``ignored`` names the
    parameters that have no effect here.
    """

    system: str
    history: tuple[Message, ...]
    user: Message
    stream: bool
    include_usage: bool
    reasoning: bool
    model: str
    options: ModelOptions
    ignored: tuple[str, ...] = ()
    session_id: str = ""
    session_key: str = ""
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])


async def read_object(request: web.Request) -> dict[str, Any]:
    """Return the request's JSON object.

    Raises:
        RequestError: no JSON, or JSON that is not an object.
    """
    raw = await request.read()
    try:
        body = _loads(raw)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"Invalid JSON in the request body: {error}") from None
    if not isinstance(body, dict):
        raise RequestError("Invalid JSON in the request body: it must be an object.")
    return cast("dict[str, Any]", body)


def _loads(raw: bytes) -> Any:
    """Parse JSON; an escaped lone surrogate becomes U+FFFD."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if b"\\ud" not in raw.lower():
            raise
    text = json.dumps(json.loads(raw), ensure_ascii=False)
    return orjson.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def flag(body: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """Return a boolean member, also from the words that older clients send.

    Raises:
        RequestError: it is neither.
    """
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise RequestError(f"'{name}' must be true or false.", param=name)


def chat_request(body: Mapping[str, Any], headers: Mapping[str, str]) -> ChatRequest:
    """Check a chat completions body.

    Raises:
        RequestError: with ``param`` naming the place.
    """
    raw = body.get("messages")
    if not isinstance(raw, list) or not raw:
        raise RequestError("'messages' must be a non-empty array.", param="messages")
    system: list[str] = []
    messages: list[Message] = []
    for index, item in enumerate(cast("list[Any]", raw)):
        message = _message(item, f"messages[{index}]")
        if message.role == "system":
            system.append(message.text)
        else:
            messages.append(message)
    if not messages or not any(messages[-1].parts):
        raise RequestError("'messages' holds no input to answer.", param="messages")
    stream_options = body.get("stream_options")
    return ChatRequest(
        system="\n".join(system),
        history=tuple(messages[:-1]),
        user=messages[-1],
        stream=flag(body, "stream"),
        include_usage=isinstance(stream_options, dict)
        and flag(cast("dict[str, Any]", stream_options), "include_usage"),
        reasoning=flag(body, "include_reasoning")
        or headers.get("X-Hermes-Reasoning", "").lower() in _TRUE,
        model=_text(body, "model"),
        options=model_options(body),
        ignored=_ignored(body),
        session_id=session_name(headers, "X-Hermes-Session-Id"),
        session_key=session_name(headers, "X-Hermes-Session-Key"),
        body=body,
    )


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RequestError(f"'{name}' must be a string.", param=name)
    return value


def session_name(headers: Mapping[str, str], name: str) -> str:
    """Return a session id or key from a header, "" when absent.

    Raises:
        RequestError: it is not one that can be taken.
    """
    value = headers.get(name, "").strip()
    if value and not is_safe_id(value):
        raise RequestError(
            f"{name} must be 1 to 256 characters without '/', '\\', '..' or control characters.",
            code="invalid_session_id",
            param=name,
        )
    return value


def _message(item: Any, place: str) -> Message:
    if not isinstance(item, dict):
        raise RequestError(f"{place} must be an object.", param=place)
    data = cast("dict[str, Any]", item)
    role = data.get("role")
    if role in ("system", "developer"):
        return Message(role="system", parts=_parts(data.get("content"), f"{place}.content"))
    if role == "user":
        return Message(role="user", parts=_parts(data.get("content"), f"{place}.content"))
    if role == "assistant":
        calls = _calls(data.get("tool_calls"), f"{place}.tool_calls")
        content = data.get("content")
        parts = () if content is None else _parts(content, f"{place}.content", empty=True)
        return Message(role="assistant", parts=(*parts, *calls))
    if role == "tool":
        return Message(role="tool", parts=(_result(data, place),))
    raise RequestError(
        f"{place}.role must be system, developer, user, assistant or tool.", param=f"{place}.role"
    )


def _parts(content: Any, place: str, *, empty: bool = False) -> tuple[Part, ...]:
    if isinstance(content, str):
        if not content.strip() and not empty:
            raise RequestError(f"{place} is empty.", param=place)
        return (TextPart(text=content),)
    if not isinstance(content, list):
        raise RequestError(f"{place} must be a string or an array of parts.", param=place)
    items = cast("list[Any]", content)
    if len(items) > MAX_PARTS:
        raise RequestError(f"{place} has more than {MAX_PARTS} parts.", param=place)
    parts = tuple(_part(item, f"{place}[{index}]") for index, item in enumerate(items))
    if not parts and not empty:
        raise RequestError(f"{place} is empty.", param=place)
    return parts


def _part(item: Any, place: str) -> Part:
    if isinstance(item, str):
        return TextPart(text=item)
    if not isinstance(item, dict):
        raise RequestError(f"{place} must be a string or an object.", param=place)
    data = cast("dict[str, Any]", item)
    kind = data.get("type")
    if kind in _TEXT_KINDS and isinstance(data.get("text"), str):
        return TextPart(text=data["text"])
    if kind == "refusal" and isinstance(data.get("refusal"), str):
        return TextPart(text=data["refusal"])
    if kind in _IMAGE_KINDS:
        return _image(data.get("image_url"), data.get("detail"), place)
    raise RequestError(
        f"{place}: content of type {str(kind)[:40]!r} is not supported; send text or images.",
        code="unsupported_content_type",
        param=place,
    )


def _image(value: Any, detail: Any, place: str) -> ImagePart:
    if isinstance(value, dict):
        data = cast("dict[str, Any]", value)
        value, detail = data.get("url"), data.get("detail", detail)
    problem = _image_problem(value)
    if problem:
        raise RequestError(f"{place}: {problem}", code="invalid_image_url", param=place)
    return ImagePart(url=cast("str", value), detail=detail if isinstance(detail, str) else "")


def _image_problem(url: Any) -> str:
    if not isinstance(url, str):
        return "image_url must be a URL."
    if url.startswith(("https://", "http://")):
        return ""
    head, _, data = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        return "image_url must be an http(s) URL or a data:image/...;base64 URL."
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return "the image data is not valid base64."
    return ""


def _calls(value: Any, place: str) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise RequestError(f"{place} must be an array.", param=place)
    calls: list[ToolCall] = []
    for index, item in enumerate(cast("list[Any]", value)):
        function = cast("dict[str, Any]", item).get("function") if isinstance(item, dict) else None
        if not isinstance(function, dict):
            raise RequestError(f"{place}[{index}] is not a function call.", param=place)
        data = cast("dict[str, Any]", function)
        calls.append(
            ToolCall(
                id=str(cast("dict[str, Any]", item).get("id") or ""),
                name=str(data.get("name") or ""),
                arguments=str(data.get("arguments") or "{}"),
            )
        )
    return tuple(calls)


def _result(data: Mapping[str, Any], place: str) -> ToolResult:
    content = data.get("content")
    parts = _parts(content, f"{place}.content", empty=True) if content is not None else ()
    return ToolResult(
        call_id=str(data.get("tool_call_id") or ""),
        name=str(data.get("name") or ""),
        text="".join(part.text for part in parts if part.kind == "text"),
    )


def _number(body: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise RequestError(f"'{name}' must be a number from {low:g} to {high:g}.", param=name)
    return value


def _whole(body: Mapping[str, Any], name: str, low: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise RequestError(f"'{name}' must be a whole number of at least {low}.", param=name)
    return value


def _stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(w, str) for w in cast("list[Any]", words)):
        raise RequestError("'stop' must be a string or an array of strings.", param="stop")
    return tuple(cast("list[str]", words))


def model_options(body: Mapping[str, Any]) -> ModelOptions:
    """Return how the model is to answer, from the parameters that reach it.

    Raises:
        RequestError: a value is out of its range, or asks for what cannot be given.
    """
    if body.get("n") not in (None, 1):
        raise RequestError(
            "Only one choice is made per request ('n' must be 1).",
            code="unsupported_parameter",
            param="n",
        )
    if body.get("tool_choice") not in (None, "auto", "none"):
        raise RequestError(
            "Tools run on the server; a call of the client's tools cannot be demanded.",
            code="unsupported_parameter",
            param="tool_choice",
        )
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in EFFORTS:
        raise RequestError(
            f"'reasoning_effort' must be one of {', '.join(EFFORTS)}.", param="reasoning_effort"
        )
    response_format = body.get("response_format")
    if response_format is not None and not isinstance(response_format, dict):
        raise RequestError("'response_format' must be an object.", param="response_format")
    limit = _whole(body, "max_completion_tokens", 1)
    return ModelOptions(
        temperature=_number(body, "temperature", 0, 2),
        top_p=_number(body, "top_p", 0, 1),
        max_output_tokens=limit if limit is not None else _whole(body, "max_tokens", 1),
        stop=_stop(body.get("stop")),
        seed=_whole(body, "seed", -(2**63)),
        reasoning_effort=effort,
        response_format=cast("dict[str, Any] | None", response_format),
    )


def _ignored(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters that a client might expect to matter and that do not."""
    return tuple(name for name in _IGNORED if body.get(name) not in (None, [], {}, "auto", "none"))


def _request_agent_overrides(
    body: Mapping[str, Any], allow_bare_model: bool = False
) -> dict[str, Any]:
    """Return the model, provider and options that the body asks for.

    A ``model`` without ``provider`` counts only when the operator allows it, so that clients with
    a fixed model name in them get the server's own.
    """
    overrides: dict[str, Any] = {}
    provider, model = _text(body, "provider"), _text(body, "model")
    if provider:
        overrides["requested_provider"] = provider
    if model and (provider or allow_bare_model):
        overrides["requested_model"] = model
    options = body.get("model_options")
    if isinstance(options, dict):
        overrides["model_options"] = options
    return overrides
