"""HTTP to model endpoints: one pool of connections for the process, foreign errors mapped once.

What is sent and what the bytes mean is the call's concern.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import NotRequired, TypeAlias, TypedDict, Unpack

import aiohttp

from hermes import __version__
from hermes.errors import (
    ProviderConnectionError,
    ProviderError,
    ProviderProtocolError,
    ProviderTimeoutError,
)
from hermes.providers.memory import EndpointMemory

_log = logging.getLogger(__name__)

_DRAIN_LIMIT = 1.0
"""Seconds that a finished stream may take to close before its connection is given up."""

_READ_BUFFER = 2**18
_WHOLE_BODY = 2**19
"""Larger bodies are sent in pieces: aiohttp warns that one write of them may block the loop."""


class Sending(TypedDict):
    """What ``Transport.send`` takes by name."""

    headers: Mapping[str, str]
    body: NotRequired[bytes | None]
    connect: NotRequired[float]
    fresh: NotRequired[bool]


class Transport:
    """Connections to endpoints, kept open between calls; made on the loop that uses them.

    Redirects are not followed: a key goes only where it was meant for. ``memory`` is what the
    process has learned of the endpoints; it lives as long as their connections.
    """

    def __init__(self) -> None:
        self.memory = EndpointMemory()
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._draining: dict[aiohttp.ClientResponse, asyncio.Task[None]] = {}

    def _session(self, *, fresh: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(fresh)
        if session is None:
            connector = (
                aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, force_close=True)
                if fresh
                else aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=30)
            )
            session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": f"hermes/{__version__}"},
                timeout=aiohttp.ClientTimeout(total=None),
                read_bufsize=_READ_BUFFER,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._sessions[fresh] = session
        return session

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        connect: float = 10.0,
        fresh: bool = False,
    ) -> aiohttp.ClientResponse:
        """Send a request and return its answer once the headers are there; ``release`` it.

        ``connect`` bounds name, connection and TLS in seconds; ``fresh`` takes a connection that
        was never used.

        Raises:
            ProviderError: no connection, or no answer on it.
        """
        data: bytes | AsyncGenerator[bytes] | None = body
        if body is not None and len(body) > _WHOLE_BODY:
            headers = {**headers, "Content-Length": str(len(body))}
            data = _pieces(body)
        try:
            return await self._session(fresh=fresh).request(
                method,
                url,
                data=data,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect),
            )
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise connection_error(error) from error

    def release(self, response: aiohttp.ClientResponse) -> None:
        """Close an answer's connection at once, unless it was read to its end or is kept."""
        if response not in self._draining:
            response.close()

    @asynccontextmanager
    async def request(
        self, method: str, url: str, **how: Unpack[Sending]
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """As ``send``, with the answer released when the block is left."""
        response = await self.send(method, url, **how)
        try:
            yield response
        finally:
            self.release(response)

    def keep(self, response: aiohttp.ClientResponse) -> None:
        """Read the rest of an answer in the background, so that its connection can serve again."""
        if response.content.is_eof():
            return
        task = asyncio.get_running_loop().create_task(self._drain(response))
        self._draining[response] = task

    async def _drain(self, response: aiohttp.ClientResponse) -> None:
        try:
            async with asyncio.timeout(_DRAIN_LIMIT):
                while await response.content.readany():
                    pass
        except (aiohttp.ClientError, OSError, TimeoutError):
            _log.debug("a finished stream was not closed by its endpoint")
        finally:
            self._draining.pop(response, None)
            response.close()

    async def aclose(self) -> None:
        """Close all connections; idempotent."""
        for response, task in list(self._draining.items()):
            response.close()
            task.cancel()
        self._draining.clear()
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(body), _READ_BUFFER):
        yield body[start : start + _READ_BUFFER]


async def read_some(response: aiohttp.ClientResponse) -> bytes:
    """Return the next bytes of an answer's body, none at its end.

    Raises:
        ProviderError: the connection broke; not before every byte that arrived was returned.
    """
    content = response.content
    try:
        return await content.readany()
    except (aiohttp.ClientError, OSError) as failure:
        # aiohttp refuses to give what it had received before the break.
        content.set_exception(None)  # pyright: ignore[reportArgumentType] - takes it back
        received = content.read_nowait()
        content.set_exception(failure)
        if received:
            return received
        raise connection_error(failure) from failure


async def read_at_most(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return an answer's body, or a little more than its first ``limit`` bytes.

    Raises:
        ProviderError: as ``read_some``.
    """
    pieces: list[bytes] = []
    size = 0
    while size <= limit and (piece := await read_some(response)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


_Case: TypeAlias = tuple[tuple[type[BaseException], ...], type[ProviderError], str]

_CASES: tuple[_Case, ...] = (
    (
        (aiohttp.ClientConnectorDNSError,),
        ProviderConnectionError,
        "The endpoint's host name cannot be resolved; check base_url and the network.",
    ),
    (
        (aiohttp.ClientConnectorSSLError,),
        ProviderConnectionError,
        "No TLS connection to the endpoint could be made; is base_url https by mistake?",
    ),
    (
        (aiohttp.ClientConnectorError,),
        ProviderConnectionError,
        "The endpoint cannot be reached ({}); check that it runs and that base_url is right.",
    ),
    (
        (aiohttp.ServerTimeoutError, TimeoutError),
        ProviderTimeoutError,
        "The endpoint did not accept a connection in time.",
    ),
    (
        (aiohttp.ServerDisconnectedError,),
        ProviderConnectionError,
        "The endpoint closed the connection without an answer.",
    ),
    (
        (aiohttp.ClientPayloadError,),
        ProviderConnectionError,
        "The connection to the endpoint broke in the middle of its answer.",
    ),
    (
        (aiohttp.ClientResponseError,),
        ProviderProtocolError,
        "The endpoint does not speak HTTP as it should.",
    ),
    (
        (BaseException,),
        ProviderConnectionError,
        "The connection to the endpoint broke ({}).",
    ),
)
"""Errors of the HTTP library, subclass before base; ``{}`` is for the system's reason."""

_LASTING: tuple[_Case, ...] = (
    (
        (aiohttp.ClientConnectorCertificateError,),
        ProviderConnectionError,
        "The endpoint's TLS certificate is not trusted.",
    ),
    (
        (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError),
        ProviderConnectionError,
        "The endpoint's address or headers cannot be used; check base_url.",
    ),
)
"""Those that come again at every try."""


def connection_error(error: BaseException) -> ProviderError:
    """Return our error for one of the HTTP library or the system; the text holds no address."""
    for case in (*_LASTING, *_CASES):
        kinds, made, message = case
        if isinstance(error, kinds):
            mapped = made(message.format(_reason(error)))
            mapped.retryable = mapped.retryable and case not in _LASTING
            return mapped
    raise AssertionError("unreachable: the last case takes every error")


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return type(error).__name__
