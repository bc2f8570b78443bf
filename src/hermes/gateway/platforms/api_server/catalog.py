"""What the server is and offers: health and models.

Nothing here runs a turn or asks a provider.
"""

import time
from typing import Any

import orjson
from aiohttp import web

from hermes import __version__
from hermes.gateway.platforms.api_server.errors import error_response
from hermes.gateway.platforms.api_server.host import Host

_STARTED = int(time.time())


def _json(body: Any) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def handle_health(host: Host, request: web.Request) -> web.Response:
    """Say that the process serves; open to everybody, probes nothing."""
    del request
    status = "draining" if host._draining else "ok"
    return _json({"status": status, "platform": "hermes-agent", "version": __version__})


def _entries(host: Host) -> list[dict[str, Any]]:
    entries = [_entry(host._model_name, host._model_name, None)]
    entries += [
        _entry(alias, str(route.get("model") or host._model_name), host._model_name)
        for alias, route in host._model_routes.items()
    ]
    return entries


def _entry(name: str, root: str, parent: str | None) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": _STARTED,
        "owned_by": "hermes",
        "permission": [],
        "root": root,
        "parent": parent,
    }


async def handle_models(host: Host, request: web.Request) -> web.Response:
    """List the agent as a model, then the route aliases."""
    if (refused := host._check_auth(request)) is not None:
        return refused
    return _json({"object": "list", "data": _entries(host)})


async def handle_model(host: Host, request: web.Request) -> web.Response:
    """Return one entry of the list."""
    if (refused := host._check_auth(request)) is not None:
        return refused
    name = request.match_info["model"]
    for entry in _entries(host):
        if entry["id"] == name:
            return _json(entry)
    return error_response(
        f"There is no model {name!r}; GET /v1/models lists them.",
        status=404,
        code="model_not_found",
    )
