"""Which models an endpoint offers, by its own list.

Nothing is kept; who asks often keeps the answer.
"""

import asyncio

import aiohttp

from hermes.errors import ProviderProtocolError, ProviderTimeoutError
from hermes.providers.call import request_headers
from hermes.providers.http import Transport, connection_error
from hermes.providers.registry import Endpoint
from hermes.providers.urls import operation_url
from hermes.wire.failures import status_error
from hermes.wire.jsonvalue import as_list, as_object, as_text, parse


async def list_models(
    transport: Transport, endpoint: Endpoint, *, limit: float = 10.0
) -> list[str]:
    """Return the ids of the endpoint's models in its order, within ``limit`` seconds.

    Raises:
        ProviderError: it cannot be reached, refuses, or answers with something else.
    """
    try:
        async with (
            asyncio.timeout(limit),
            transport.request(
                "GET",
                operation_url(endpoint.base_url, "/models"),
                headers=request_headers(endpoint),
                connect=min(limit, endpoint.limits.connect),
            ) as response,
        ):
            body = await response.read()
            if response.status != 200:
                raise status_error(response.status, response.headers, body)
    except TimeoutError:
        raise ProviderTimeoutError(
            f"{endpoint.name} did not list its models within {limit:g} s."
        ) from None
    except (aiohttp.ClientError, OSError) as error:
        raise connection_error(error) from error
    answer = parse(body)
    entries = as_list(as_object(answer).get("data")) or as_list(as_object(answer).get("models"))
    names = [as_text(as_object(item).get("id") or as_object(item).get("name")) for item in entries]
    if not entries and "data" not in as_object(answer) and "models" not in as_object(answer):
        raise ProviderProtocolError(f"{endpoint.name} did not answer with a list of models.")
    return [name for name in names if name]
