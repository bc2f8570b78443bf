"""HTTP to model endpoints: one session for the process, foreign errors mapped in one place.

What is sent and what the bytes mean is the call's concern.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import aiohttp

from hermes import __version__
from hermes.errors import ProviderConnectionError, ProviderError, ProviderTimeoutError

_log = logging.getLogger(__name__)

_DRAIN_LIMIT = 1.0
"""Seconds that a finished stream may take to close before its connection is given up."""

_READ_BUFFER = 2**18


class Transport:
    """Connections to endpoints, kept open between calls; made on the loop that uses them.

    Redirects are not followed: a key goes only where it was meant for.
    """

    def __init__(self) -> None:
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._draining: set[asyncio.Task[None]] = set()

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

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        connect: float = 10.0,
        fresh: bool = False,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Send a request and give its answer once the headers are there.

        ``connect`` bounds name, connection and TLS in seconds; ``fresh`` takes a connection that
        was never used. Leaving the block closes the connection, unless the answer was read to
        its end or handed to ``keep``.

        Raises:
            ProviderConnectionError, ProviderTimeoutError: no connection, or no answer on it.
        """
        try:
            response = await self._session(fresh=fresh).request(
                method,
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect),
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise connection_error(error) from error
        try:
            yield response
        finally:
            # Does nothing to a connection that has gone back to the pool.
            response.close()

    def keep(self, response: aiohttp.ClientResponse) -> None:
        """Read the rest of an answer in the background, so that its connection can serve again."""
        if response.content.at_eof():
            return
        task = asyncio.get_running_loop().create_task(_drain(response))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def aclose(self) -> None:
        """Close all connections; idempotent."""
        for task in list(self._draining):
            task.cancel()
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()


async def _drain(response: aiohttp.ClientResponse) -> None:
    try:
        async with asyncio.timeout(_DRAIN_LIMIT):
            while await response.content.readany():
                pass
    except (aiohttp.ClientError, OSError, TimeoutError):
        _log.debug("a finished stream was not closed by its endpoint")
    finally:
        response.close()


def connection_error(error: BaseException) -> ProviderError:
    """Return our error for one of the HTTP library or the system; the text holds no address."""
    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
        return ProviderTimeoutError("The endpoint did not accept a connection in time.")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return ProviderConnectionError(
            "The endpoint's host name cannot be resolved; check base_url and the network."
        )
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError):
        return ProviderConnectionError(
            "The endpoint's TLS certificate is not trusted.", code="provider_connection"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        return ProviderConnectionError(
            f"The endpoint cannot be reached ({_reason(error.os_error)}); "
            "check that it runs and that base_url is right."
        )
    return ProviderConnectionError(f"The connection to the endpoint broke ({_reason(error)}).")


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
