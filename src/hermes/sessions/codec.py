"""Messages as stored JSON and back, and the words of a message that can be searched.

The shape is versioned and only ever grows: a reader skips what it does not know. No wire format of
a provider or client is known here.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast, get_args

import orjson

from hermes.errors import SessionError
from hermes.messages import (
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)

VERSION = 1

SEARCHABLE_CHARACTERS = 65_536
"""How much of one message can be found by its words; PostgreSQL bounds a ``tsvector`` at 1 MB."""

_ROLES: frozenset[str] = frozenset(get_args(Role))


def clean(text: str) -> str:
    """Return ``text`` as any database takes it: lone surrogates and NUL become U+FFFD."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


def encode(message: Message) -> str:
    """Return the stored JSON; lone surrogates become U+FFFD, NUL stays (JSON escapes it)."""
    stored: dict[str, Any] = {
        "v": VERSION,
        "role": message.role,
        "parts": [_encode_part(part) for part in message.parts],
    }
    if message.id:
        stored["id"] = message.id
    try:
        return orjson.dumps(stored).decode()
    except orjson.JSONEncodeError:
        return orjson.dumps(_without_surrogates(stored)).decode()


def decode(body: str) -> Message:
    """Return the message of stored JSON; parts and fields of a later version are skipped.

    Raises:
        SessionError: ``message_unreadable``, the text is no stored message.

    """
    return _decode_message(_loaded(body))


def encode_all(messages: Sequence[Message]) -> str:
    """Return the stored JSON of several messages, in order."""
    return f"[{','.join(map(encode, messages))}]"


def decode_all(body: str) -> tuple[Message, ...]:
    """Return the messages of what ``encode_all`` gave; raises as ``decode`` does."""
    stored = _loaded(body)
    if not isinstance(stored, list):
        raise _unreadable()
    return tuple([_decode_message(entry) for entry in cast("list[Any]", stored)])


def searchable(message: Message) -> str:
    """Return the words to find the message by: its text and tool results, one line each part."""
    words = [
        part.text for part in message.parts if isinstance(part, TextPart | ToolResult) and part.text
    ]
    joined = words[0] if len(words) == 1 else "\n".join(words)
    return clean(joined[:SEARCHABLE_CHARACTERS])


def _loaded(body: str) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _unreadable() from error


def _decode_message(stored: Any) -> Message:
    if not isinstance(stored, dict):
        raise _unreadable()
    fields = cast("dict[str, Any]", stored)
    role = _text(fields, "role")
    entries = fields.get("parts")
    if role not in _ROLES or not isinstance(entries, list):
        raise _unreadable()
    parts = [_decode_part(entry) for entry in cast("list[Any]", entries)]
    return Message(
        role=cast("Role", role),
        parts=tuple([part for part in parts if part is not None]),
        id=_text(fields, "id"),
    )


def _encode_part(part: Part) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"kind": "text", "text": part.text}
        case ToolCall():
            return {
                "kind": "tool_call",
                "id": part.id,
                "name": part.name,
                "arguments": part.arguments,
            }
        case ToolResult():
            return _encode_result(part)
        case ReasoningPart():
            stored = {"kind": "reasoning", "text": part.text}
            given = (
                ("signature", part.signature),
                ("opaque", part.opaque),
                ("origin", part.origin),
            )
            stored.update((key, value) for key, value in given if value)
            return stored
        case ImagePart():
            return _encode_image(part)


def _encode_image(part: ImagePart) -> dict[str, Any]:
    stored = {"kind": "image", "url": part.url}
    if part.detail:
        stored["detail"] = part.detail
    return stored


def _encode_result(part: ToolResult) -> dict[str, Any]:
    stored: dict[str, Any] = {
        "kind": "tool_result",
        "call_id": part.call_id,
        "name": part.name,
        "text": part.text,
    }
    if part.is_error:
        stored["is_error"] = True
    if part.stored_as:
        stored["stored_as"] = part.stored_as
    if part.images:
        stored["images"] = [_encode_image(image) for image in part.images]
    return stored


def _decode_part(entry: Any) -> Part | None:
    if not isinstance(entry, dict):
        return None
    fields = cast("dict[str, Any]", entry)
    decoder = _DECODERS.get(_text(fields, "kind"))
    return decoder(fields) if decoder else None


def _decode_text(fields: dict[str, Any]) -> TextPart:
    return TextPart(text=_text(fields, "text"))


def _decode_call(fields: dict[str, Any]) -> ToolCall:
    return ToolCall(
        id=_text(fields, "id"),
        name=_text(fields, "name"),
        arguments=_text(fields, "arguments"),
    )


def _decode_reasoning(fields: dict[str, Any]) -> ReasoningPart:
    return ReasoningPart(
        text=_text(fields, "text"),
        signature=_text(fields, "signature"),
        opaque=_text(fields, "opaque"),
        origin=_text(fields, "origin"),
    )


def _decode_image(fields: dict[str, Any]) -> ImagePart:
    return ImagePart(url=_text(fields, "url"), detail=_text(fields, "detail"))


def _decode_result(fields: dict[str, Any]) -> ToolResult:
    found = fields.get("images")
    entries = cast("list[Any]", found) if isinstance(found, list) else []
    images = (_decode_part(entry) for entry in entries)
    return ToolResult(
        call_id=_text(fields, "call_id"),
        name=_text(fields, "name"),
        text=_text(fields, "text"),
        is_error=fields.get("is_error") is True,
        stored_as=_text(fields, "stored_as"),
        images=tuple(image for image in images if isinstance(image, ImagePart)),
    )


_DECODERS: dict[str, Callable[[dict[str, Any]], Part]] = {
    "text": _decode_text,
    "tool_call": _decode_call,
    "tool_result": _decode_result,
    "reasoning": _decode_reasoning,
    "image": _decode_image,
}


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _without_surrogates(item) for key, item in items}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("list[Any]", value)]
    return value


def _unreadable() -> SessionError:
    return SessionError("A stored message cannot be read.", code="message_unreadable")
