"""One streamed answer from the local model's process, over loopback.

What to ask and what to do after a failure is not decided here.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson

from hermes.errors import (
    ProviderConnectionError,
    ProviderError,
    ProviderProtocolError,
    ProviderStatusError,
    ProviderTimeoutError,
)
from hermes.events import Delta
from hermes.messages import ModelRequest
from hermes.providers.local_process import Address
from hermes.sse import Decoder
from hermes.wire import openai_chat
from hermes.wire.failures import status_error
from hermes.wire.quirks import Quirks

_SILENCE_SECONDS = 600.0
"""A request may have to wait for others, and a long prompt takes a minute on a slow machine."""

_TOO_LONG = "The conversation is too long for the local model: start a new chat or add a provider."


class LocalClient:
    """Connections to the model's process; one a request, so that closing it stops the model."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def stream(
        self, address: Address, request: ModelRequest
    ) -> AsyncGenerator[AsyncIterator[list[Delta]]]:
        """Ask, and give the answer in the batches in which it arrives.

        Leaving the context closes the connection, which ends the model's work on it.

        Raises (also while iterating):
            ProviderConnectionError, ProviderTimeoutError, ProviderStatusError,
            ProviderProtocolError.
        """
        body = orjson.dumps(openai_chat.encode_request(request, Quirks()))
        headers = {"Authorization": f"Bearer {address.key}", "Content-Type": "application/json"}
        url = f"{address.base_url}/v1/chat/completions"
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._open().post(url, data=body, headers=headers)
            if response.status != 200:
                error = await response.read()
                raise status_error(response.status, response.headers, error)
            yield _batches(response)
        except (aiohttp.ClientError, OSError, ProviderStatusError) as error:
            raise _ours(error) from error
        finally:
            if response is not None:
                response.close()

    async def aclose(self) -> None:
        """Close all connections; idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_read=_SILENCE_SECONDS)
            connector = aiohttp.TCPConnector(force_close=True)
            self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self._session


async def _batches(response: aiohttp.ClientResponse) -> AsyncGenerator[list[Delta]]:
    decoder, answer = Decoder(), openai_chat.StreamDecoder("local")
    async for chunk in response.content.iter_any():
        deltas = answer.feed(decoder.feed(chunk))
        if deltas:
            yield deltas
        if answer.done:
            break
    yield answer.finish()


def _ours(error: Exception) -> ProviderError:
    if isinstance(error, ProviderStatusError):
        if error.code != "context_length_exceeded":
            return error
        return ProviderStatusError(_TOO_LONG, status=error.status, code=error.code)
    if isinstance(error, TimeoutError):
        return ProviderTimeoutError("The local model was silent for too long.")
    if isinstance(error, aiohttp.ClientPayloadError):
        return ProviderProtocolError(
            "The local model broke off its answer.", code="provider_incomplete"
        )
    return ProviderConnectionError("The local model could not be reached.")
