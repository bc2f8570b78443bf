"""One physical model call: encode, send, decode, with limits that count only content.

Nothing is tried twice here.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import orjson

from hermes.errors import (
    ProviderError,
    ProviderProtocolError,
    ProviderTimeoutError,
)
from hermes.events import Delta, Finish
from hermes.messages import ModelOptions, ModelRequest
from hermes.providers.http import Transport, connection_error
from hermes.providers.limits import Patience, is_reasoning_model, patience
from hermes.providers.registry import Endpoint
from hermes.providers.urls import operation_url
from hermes.sse import Decoder, Event, EventTooLargeError
from hermes.wire import anthropic, openai_chat, openai_responses
from hermes.wire.failures import status_error
from hermes.wire.quirks import Quirks
from hermes.wire.stream import StreamDecoderBase

_log = logging.getLogger(__name__)

_ERROR_BODY = 65_536
_TRAILER_LIMIT = 3.0
"""Seconds to wait for usage and the end mark once the model has said why it stopped."""

_WHOLE_BODY = 64 * 2**20


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


WIRES: Mapping[str, Wire] = {
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


def request_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers of every request to an endpoint; the operator's own win."""
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


_NOTHING_SET = ModelOptions()


@dataclass(slots=True)
class _Progress:
    """What has come of a call, for the limits and for the log."""

    started: float
    last_content: float = 0.0
    first_content: float = 0.0
    received: int = 0
    reads: int = 0


class Call:
    """One call at one endpoint with what is known of the endpoint now."""

    def __init__(
        self,
        transport: Transport,
        endpoint: Endpoint,
        quirks: Quirks,
        request: ModelRequest,
        *,
        fresh: bool,
        attempt: str = "1/1",
    ) -> None:
        self._transport = transport
        self._endpoint = endpoint
        self._wire = WIRES[endpoint.protocol]
        model = request.model or endpoint.model
        self._model = model
        self._streamed = request.stream
        options = merged_options(request.options, endpoint.options)
        body = self._wire.encode(replace(request, model=model, options=options), quirks)
        self._body = _dump(body)
        self._fresh = fresh
        self._attempt = attempt
        thinks = options.reasoning_effort != "none" and is_reasoning_model(model)
        self._patience: Patience = patience(endpoint.limits, local=endpoint.local, reasoning=thinks)
        self._request_id = ""
        self._progress = _Progress(started=time.monotonic())

    @asynccontextmanager
    async def stream(self) -> AsyncGenerator[AsyncIterator[Delta]]:
        """Send the request; give its deltas. Leaving early closes the connection.

        Raises:
            ProviderError: of every kind but an empty answer.
        """
        async with aclosing(self._deltas()) as deltas:
            yield deltas

    async def _deltas(self) -> AsyncGenerator[Delta]:
        limits = self._patience
        first = limits.first_content if self._streamed else limits.whole_answer
        self._progress.started = time.monotonic()
        deadline = asyncio.get_running_loop().time() + first
        request = self._transport.request(
            "POST",
            operation_url(self._endpoint.base_url, self._wire.path),
            headers=request_headers(self._endpoint),
            body=self._body,
            connect=self._endpoint.limits.connect,
            fresh=self._fresh,
        )
        try:
            async with asyncio.timeout_at(deadline):
                response = await request.__aenter__()
        except TimeoutError:
            raise self._silent(first) from None
        try:
            self._request_id = response.headers.get("x-request-id", "")
            if response.status != 200:
                raise await self._refusal(response)
            kind = response.content_type
            if self._streamed and kind != "application/json":
                if kind == "text/html":
                    raise ProviderProtocolError(
                        "The endpoint answered with a web page; base_url is not a model API."
                    )
                async for delta in self._read_stream(response, deadline):
                    yield delta
            else:
                for delta in await self._read_whole(response, deadline):
                    yield self._signed(delta)
        except ProviderError as error:
            self._log_failure(error)
            raise
        finally:
            await request.__aexit__(None, None, None)

    async def _refusal(self, response: aiohttp.ClientResponse) -> ProviderError:
        try:
            async with asyncio.timeout(10.0):
                body = await _read_at_most(response, _ERROR_BODY)
        except (TimeoutError, aiohttp.ClientError, OSError):
            body = b""
        return status_error(response.status, response.headers, body)

    async def _read_whole(self, response: aiohttp.ClientResponse, deadline: float) -> list[Delta]:
        try:
            async with asyncio.timeout_at(deadline):
                body = await _read_at_most(response, _WHOLE_BODY)
        except TimeoutError:
            raise self._silent(self._patience.whole_answer) from None
        except (aiohttp.ClientError, OSError) as error:
            raise connection_error(error) from error
        return self._wire.decode_answer(body, self._endpoint.origin)

    async def _read_stream(
        self, response: aiohttp.ClientResponse, deadline: float
    ) -> AsyncIterator[Delta]:
        decoder = self._wire.decoder(self._endpoint.origin)
        frames = Decoder()
        progress = self._progress
        loop = asyncio.get_running_loop()
        while not decoder.done:
            chunk = await self._read(response, decoder, deadline)
            if not chunk:
                break
            progress.received += len(chunk)
            progress.reads += 1
            deltas = decoder.feed(_events(frames, chunk))
            if deltas:
                progress.last_content = time.monotonic()
                progress.first_content = progress.first_content or progress.last_content
                for delta in deltas:
                    yield delta
                deadline = loop.time() + self._patience.stall
            if decoder.finished:
                deadline = loop.time() + _TRAILER_LIMIT
        for delta in self._closing(decoder, frames):
            yield self._signed(delta)
        self._transport.keep(response)

    def _closing(self, decoder: StreamDecoderBase, frames: Decoder) -> list[Delta]:
        """Return what a stream that has ended still holds, its ``Finish`` last."""
        if not decoder.has_content and frames.leftover.lstrip()[:1] == b"{":
            # A JSON answer, most often an error, that came as an event stream.
            return self._wire.decode_answer(frames.leftover, self._endpoint.origin)
        last = None if decoder.done else frames.pending()
        return [*(decoder.feed((last,)) if last is not None else ()), *decoder.finish()]

    async def _read(
        self, response: aiohttp.ClientResponse, decoder: StreamDecoderBase, deadline: float
    ) -> bytes:
        """Return the next bytes, none at the end; a break after the model's end is an end."""
        try:
            async with asyncio.timeout_at(deadline):
                return await response.content.readany()
        except TimeoutError:
            if decoder.finished:
                return b""
            if decoder.has_content:
                raise ProviderTimeoutError(
                    f"The model sent nothing more for {self._patience.stall:g} s.",
                    code="provider_stalled",
                ) from None
            raise self._silent(self._patience.first_content) from None
        except (aiohttp.ClientError, OSError) as error:
            if decoder.finished:
                return b""
            raise connection_error(error) from error

    def _silent(self, seconds: float) -> ProviderTimeoutError:
        return ProviderTimeoutError(
            f"The model did not begin its answer within {seconds:g} s.", code="provider_timeout"
        )

    def _signed(self, delta: Delta) -> Delta:
        if isinstance(delta, Finish):
            return replace(delta, model=delta.model or self._model, origin=self._endpoint.origin)
        return delta

    def _log_failure(self, error: ProviderError) -> None:
        progress = self._progress
        now = time.monotonic()
        waited = progress.first_content - progress.started if progress.first_content else -1.0
        _log.warning(
            "model call failed: endpoint=%s model=%s attempt=%s code=%s cause=%s bytes=%d reads=%d "
            "elapsed=%.3fs first_content=%.3fs request_id=%s",
            self._endpoint.name,
            self._model,
            self._attempt,
            error.code,
            _causes(error),
            progress.received,
            progress.reads,
            now - progress.started,
            waited,
            self._request_id or "-",
        )


def _events(frames: Decoder, chunk: bytes) -> list[Event]:
    try:
        return frames.feed(chunk)
    except EventTooLargeError as error:
        raise ProviderProtocolError(
            f"The endpoint sent an event that is too large: {error.message}",
            code="event_too_large",
        ) from None


async def _read_at_most(response: aiohttp.ClientResponse, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size < limit and (piece := await response.content.readany()):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)[:limit]


def _dump(body: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise ProviderProtocolError(
            f"The conversation cannot be sent as JSON: {error}", code="unencodable_request"
        ) from None


def _causes(error: BaseException) -> str:
    names: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(names) < 6:
        names.append(type(cause).__name__)
        cause = cause.__cause__
    return "<".join(names)
