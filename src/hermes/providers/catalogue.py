"""Which models an endpoint offers, by its own list.

Nothing is kept; who asks often keeps the answer.
"""

import asyncio

from hermes.errors import ProviderProtocolError, ProviderTimeoutError
from hermes.providers.http import Transport, read_at_most
from hermes.providers.registry import Endpoint
from hermes.providers.urls import operation_url
from hermes.providers.wires import request_headers
from hermes.wire.failures import status_error
from hermes.wire.jsonvalue import as_list, as_object, as_text, parse

_MAX_LIST = 16 * 2**20


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
            body = await read_at_most(response, _MAX_LIST)
            if response.status != 200:
                raise status_error(response.status, response.headers, body)
    except TimeoutError:
        raise ProviderTimeoutError(
            f"{endpoint.name} did not list its models within {limit:g} s."
        ) from None
    answer = parse(body)
    entries = as_list(as_object(answer).get("data")) or as_list(as_object(answer).get("models"))
    names = [as_text(as_object(item).get("id") or as_object(item).get("name")) for item in entries]
    if not entries and "data" not in as_object(answer) and "models" not in as_object(answer):
        raise ProviderProtocolError(f"{endpoint.name} did not answer with a list of models.")
    return [name for name in names if name]
