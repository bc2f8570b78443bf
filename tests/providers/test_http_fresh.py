"""Connections that must not be reused."""

import pytest

from hermes.providers.http import Transport
from support.scripted_http import LAST, ScriptedHttp, chunk, head


@pytest.mark.asyncio
async def test_a_fresh_request_takes_a_connection_of_its_own() -> None:
    async with ScriptedHttp() as server:
        server.default = lambda _: [head(), chunk(b"ok"), LAST]
        transport = Transport()
        try:
            for fresh in (False, False, True, True):
                async with transport.request(
                    "POST", server.base_url, headers={}, body=b"{}", fresh=fresh
                ) as response:
                    assert await response.read() == b"ok"
            assert server.connections == 3
        finally:
            await transport.aclose()
