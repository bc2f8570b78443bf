"""What each protocol needs beyond its codec: a path and headers; and a call's whole options.

Nothing is sent here.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson

from hermes.errors import ProviderProtocolError
from hermes.events import Delta
from hermes.messages import ModelOptions, ModelRequest
from hermes.providers.profiles import Protocol
from hermes.providers.registry import Endpoint
from hermes.wire import anthropic, openai_chat, openai_responses
from hermes.wire.jsonvalue import clean_text
from hermes.wire.quirks import Quirks
from hermes.wire.stream import StreamDecoderBase


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How a protocol is spoken: its operation's path, its codec, its headers for a key."""

    path: str
    encode: Callable[[ModelRequest, Quirks], dict[str, Any]]
    decoder: Callable[[str], StreamDecoderBase]
    decode_answer: Callable[[bytes, str], list[Delta]]
    key_headers: Callable[[str], Mapping[str, str]]


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anthropic_key(key: str) -> Mapping[str, str]:
    return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})


WIRES: Mapping[Protocol, Wire] = MappingProxyType(
    {
        "openai_chat": Wire(
            path="/chat/completions",
            encode=openai_chat.encode_request,
            decoder=openai_chat.StreamDecoder,
            decode_answer=openai_chat.decode_answer,
            key_headers=_bearer,
        ),
        "openai_responses": Wire(
            path="/responses",
            encode=openai_responses.encode_request,
            decoder=openai_responses.StreamDecoder,
            decode_answer=openai_responses.decode_answer,
            key_headers=_bearer,
        ),
        "anthropic": Wire(
            path="/messages",
            encode=anthropic.encode_request,
            decoder=anthropic.StreamDecoder,
            decode_answer=anthropic.decode_answer,
            key_headers=_anthropic_key,
        ),
    }
)
"""How each protocol is spoken."""

_NOTHING_SET = ModelOptions()


def request_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers of every request to an endpoint; the operator's own win.

    A compressed stream would be held back by the compressor, so none is asked for.
    """
    return {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        **WIRES[endpoint.protocol].key_headers(endpoint.api_key),
        **endpoint.headers,
    }


def merged_options(upper: ModelOptions, lower: ModelOptions) -> ModelOptions:
    """Return ``upper`` with what it leaves open taken from ``lower``."""
    if lower == _NOTHING_SET:
        return upper
    values = {
        name: getattr(lower, name) if getattr(upper, name) in (None, ()) else getattr(upper, name)
        for name in ModelOptions.__dataclass_fields__
        if name != "extra"
    }
    return ModelOptions(**values, extra={**lower.extra, **upper.extra})


def dump_body(body: dict[str, Any]) -> bytes:
    """Return a request body as JSON; lone surrogates become U+FFFD.

    Raises:
        ProviderProtocolError: ``unencodable_request``, a value that JSON does not have.
    """
    try:
        return orjson.dumps(body, default=_plain)
    except orjson.JSONEncodeError:
        pass
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        failure = ProviderProtocolError(
            f"The conversation cannot be sent as JSON: {error}", code="unencodable_request"
        )
        failure.retryable = failure.fail_over = False
        raise failure from None
    return clean_text(text).encode()


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise TypeError(f"{type(value).__name__} is not a JSON value")
