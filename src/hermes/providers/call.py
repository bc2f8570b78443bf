"""One physical model call: encode, send, decode, with limits that count only content.

Nothing is tried twice here.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple

import aiohttp

from hermes.errors import (
    EmptyAnswerError,
    ProviderError,
    ProviderProtocolError,
    ProviderStatusError,
    ProviderTimeoutError,
)
from hermes.events import Delta, Finish
from hermes.messages import ModelRequest
from hermes.providers.clock import Clock, LoopClock, Watch
from hermes.providers.http import Transport, read_at_most, read_some
from hermes.providers.limits import is_reasoning_model, patience
from hermes.providers.progress import Progress
from hermes.providers.registry import Endpoint
from hermes.providers.urls import operation_url
from hermes.providers.wires import WIRES, dump_body, merged_options, request_headers
from hermes.sse import Decoder, Event, EventTooLargeError
from hermes.wire.failures import status_error
from hermes.wire.quirks import Quirks
from hermes.wire.stream import StreamDecoderBase

_ERROR_BODY = 2**16
_ERROR_SECONDS = 10.0
_ANSWER_BODY = 64 * 2**20
_LINGER = 3.0
"""Seconds to wait for usage and the closing marker after the model said why it stopped."""


class Attempt(NamedTuple):
    """Which of how many calls at an endpoint this is; ``fresh`` takes a new connection."""

    number: int = 1
    of: int = 1
    fresh: bool = False


class Call:
    """One call at one endpoint with what is known of the endpoint now.

    Raises:
        ProviderProtocolError: ``unencodable_request``.
    """

    def __init__(
        self,
        transport: Transport,
        endpoint: Endpoint,
        quirks: Quirks,
        request: ModelRequest,
        *,
        attempt: Attempt = Attempt(),  # noqa: B008 - immutable
        clock: Clock | None = None,
    ) -> None:
        self._transport = transport
        self._endpoint = endpoint
        self._wire = WIRES[endpoint.protocol]
        self._attempt = attempt
        self._model = model = request.model or endpoint.model
        self._streamed = request.stream
        options = merged_options(request.options, endpoint.options)
        whole = replace(request, model=model, options=options)
        self._body = dump_body(self._wire.encode(whole, quirks))
        thinks = options.reasoning_effort != "none" and is_reasoning_model(model)
        limits = patience(endpoint.limits, local=endpoint.local, reasoning=thinks)
        self._stall = limits.stall
        self._first = limits.first_content if request.stream else limits.whole_answer
        self._clock = clock or LoopClock()
        self._watch = Watch(self._clock)
        self.progress = Progress(self._clock)

    async def deltas(self) -> AsyncGenerator[Delta]:
        """Send the request and give its deltas. Closing it early closes the connection at once.

        Raises:
            ProviderError: of every kind.
        """
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._send()
            await self._check_head(response)
            if self._streamed and response.content_type != "application/json":
                async with aclosing(self._read_stream(response)) as deltas:
                    async for delta in deltas:
                        yield delta
            else:
                for delta in await self._read_whole(response):
                    yield delta
        except ProviderError as error:
            self.progress.log_failure(self._endpoint.name, self._model, self._attempt, error)
            raise
        finally:
            self._watch.stop()
            if response is not None:
                self._transport.release(response)

    async def _send(self) -> aiohttp.ClientResponse:
        """Return the answer when its head has come; the watch runs from here on."""
        watch = self._watch
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(None) as limit:
                watch.on_expiry = lambda: limit.reschedule(0)
                watch.limit(self._first)
                response = await self._transport.send(
                    "POST",
                    operation_url(endpoint.base_url, self._wire.path),
                    headers=request_headers(endpoint),
                    body=self._body,
                    connect=endpoint.limits.connect,
                    fresh=self._attempt.fresh,
                )
        except TimeoutError:
            raise self._silence() from None
        watch.on_expiry = response.close
        self.progress.answered(response.headers)
        return response

    async def _check_head(self, response: aiohttp.ClientResponse) -> None:
        if not 200 <= response.status < 300:
            raise await self._refusal(response)
        if response.content_type == "text/html":
            error = ProviderProtocolError(
                "The endpoint answered with a web page, not with a model's words; check base_url."
            )
            error.retryable = False
            raise error

    async def _refusal(self, response: aiohttp.ClientResponse) -> ProviderError:
        if response.status < 400:
            return ProviderStatusError(
                "The endpoint redirects to another address; set base_url to that one.",
                status=response.status,
                code="provider_request",
            )
        self._watch.limit(_ERROR_SECONDS)
        try:
            body = await read_at_most(response, _ERROR_BODY)
        except ProviderError:
            body = b""  # The status says enough.
        return status_error(response.status, response.headers, body[:_ERROR_BODY])

    async def _read_whole(self, response: aiohttp.ClientResponse) -> list[Delta]:
        try:
            body = await read_at_most(response, _ANSWER_BODY)
        except ProviderError:
            if self._watch.expired:
                raise self._silence() from None
            raise
        self.progress.read(len(body))
        if len(body) > _ANSWER_BODY:
            raise _too_large(f"The endpoint's answer is longer than {_ANSWER_BODY} bytes.")
        if not body.strip():
            raise EmptyAnswerError("The endpoint's answer is empty.")
        return [self._signed(d) for d in self._wire.decode_answer(body, self._endpoint.origin)]

    async def _read_stream(self, response: aiohttp.ClientResponse) -> AsyncGenerator[Delta]:
        decoder = self._wire.decoder(self._endpoint.origin)
        frames = Decoder()
        watch = self._watch
        lingers = False
        while not decoder.done:
            chunk = await self._read(response, decoder)
            if not chunk:
                break
            self.progress.read(len(chunk))
            deltas = decoder.feed(_events(frames, chunk))
            if deltas:
                self.progress.content()
                watch.hold()
                for delta in deltas:
                    yield delta
            if decoder.finished and not lingers:
                lingers = True
                watch.limit(_LINGER)
            elif deltas:
                watch.limit(self._stall)
        if not decoder.has_content and frames.leftover.lstrip()[:1] == b"{":
            # A JSON answer, most often an error, that came as an event stream.
            closing = self._wire.decode_answer(frames.leftover, self._endpoint.origin)
        else:
            for delta in self._rest(decoder, frames):
                yield delta
            closing = decoder.finish()
        self._transport.keep(response)
        for delta in closing:
            yield self._signed(delta)

    async def _read(self, response: aiohttp.ClientResponse, decoder: StreamDecoderBase) -> bytes:
        """Return the next bytes, none at the end; a break after the model's end is an end."""
        try:
            return await read_some(response)
        except ProviderError:
            if decoder.finished:
                return b""
            if self._watch.expired:
                raise self._silence(decoder) from None
            raise

    def _rest(self, decoder: StreamDecoderBase, frames: Decoder) -> list[Delta]:
        """Return the deltas of an unterminated last event; refuse a stream of nothing."""
        deltas: list[Delta] = []
        if not decoder.done:
            try:
                last = frames.pending()
            except EventTooLargeError as error:
                raise _too_large(error.message) from None
            deltas = decoder.feed((last,)) if last is not None else []
        if not decoder.has_content and not decoder.finished:
            raise EmptyAnswerError("The endpoint closed its answer before the first word.")
        return deltas

    def _silence(self, decoder: StreamDecoderBase | None = None) -> ProviderError:
        """Return the error for a limit that has passed."""
        if decoder is not None and decoder.has_content:
            return ProviderTimeoutError(
                f"The model stalled: it sent nothing more for {self._stall:g} s (stall limit).",
                code="provider_stalled",
            )
        if self.progress.received:
            return ProviderTimeoutError(
                f"The model stalled: the endpoint kept the connection alive for {self._first:g} s "
                "without a word (limit for the first content).",
                code="provider_stalled",
            )
        return ProviderTimeoutError(
            f"The endpoint was silent for {self._first:g} s (limit for the first content)."
        )

    def _signed(self, delta: Delta) -> Delta:
        if isinstance(delta, Finish):
            return replace(delta, model=delta.model or self._model, origin=self._endpoint.origin)
        return delta


def _events(frames: Decoder, chunk: bytes) -> list[Event]:
    try:
        return frames.feed(chunk)
    except EventTooLargeError as error:
        raise _too_large(error.message) from None


def _too_large(message: str) -> ProviderProtocolError:
    error = ProviderProtocolError(
        f"The endpoint sent more at once than is taken: {message}", code="event_too_large"
    )
    error.retryable = False
    return error
