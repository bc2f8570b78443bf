"""Asking an endpoint for its models: fast when it refuses, bounded when it is silent."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hermes.errors import ProviderError
from hermes.providers.catalogue import list_models
from hermes.providers.http import Transport
from support.agents import served_by
from support.scripted_http import LIMIT, Fault, ScriptedHttp, body, error, head, whole

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def transport() -> AsyncIterator[Transport]:
    made = Transport()
    yield made
    await made.aclose()


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ({"object": "list", "data": [{"id": "b"}, {"id": "a"}]}, ["b", "a"]),
        ({"models": [{"name": "x"}]}, ["x"]),
        ({"data": [{"id": "a"}, {"id": 5}, {}, None]}, ["a"]),
        ({"data": []}, []),
    ],
)
async def test_names_come_in_the_endpoints_order(
    scripted_http: ScriptedHttp, transport: Transport, answer: object, names: list[str]
) -> None:
    scripted_http.script(whole(answer))
    assert await list_models(transport, served_by(scripted_http)) == names
    [request] = scripted_http.requests
    assert (request.method, request.path) == ("GET", "/v1/models")
    assert request.headers["authorization"] == "Bearer key-of-the-test"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(401, "Incorrect API key"), "authentication"),
        (error(404, "not here"), "not_found"),
        (body(b"<html>hi</html>", content_type="text/html"), "provider_protocol"),
        (body(json.dumps({"hello": 1}).encode()), "provider_protocol"),
        ([head(content_type="application/json", length=99), b"{", Fault.RESET],
         "provider_connection"),
    ],
)  # fmt: skip
async def test_a_refusal_is_told_at_once_and_asked_once(
    scripted_http: ScriptedHttp, transport: Transport, answer: list[object], code: str
) -> None:
    scripted_http.script(answer)
    async with asyncio.timeout(1.0):
        with pytest.raises(ProviderError) as caught:
            await list_models(transport, served_by(scripted_http))
    assert caught.value.code == code
    assert len(scripted_http.requests) == 1


async def test_an_endpoint_that_hangs_up_is_told(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.default = lambda _: [Fault.RESET]
    with pytest.raises(ProviderError) as caught:
        await list_models(transport, served_by(scripted_http))
    assert caught.value.code == "provider_connection"


async def test_a_silent_endpoint_is_left_after_the_limit(
    scripted_http: ScriptedHttp, transport: Transport
) -> None:
    scripted_http.script([Fault.HANG])
    with pytest.raises(ProviderError) as caught:
        await list_models(transport, served_by(scripted_http), limit=0.05)
    assert caught.value.code == "provider_timeout"
    await asyncio.wait_for(scripted_http.requests[0].hung_up.wait(), LIMIT)
