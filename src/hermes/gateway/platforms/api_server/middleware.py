"""What holds for every request: origins, security headers, JSON errors.

Nothing here knows a route.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from hermes.errors import HermesError, RequestError
from hermes.gateway.platforms.api_server.errors import (
    error_response,
    request_error_response,
    status_of,
)

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-XSS-Protection": "0",
    "Referrer-Policy": "no-referrer",
}

_ALLOWED_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Hermes-Session-Id, "
    "X-Hermes-Session-Key, X-Hermes-Events, X-Hermes-Reasoning, X-Request-Id"
)
_EXPOSED_HEADERS = (
    "X-Hermes-Session-Id, X-Hermes-Session-Key, X-Hermes-Completed, X-Hermes-Partial, "
    "X-Hermes-Error, X-Hermes-Ignored-Parameters, X-Request-Id, Retry-After"
)
ADAPTER: web.AppKey[Any] = web.AppKey("api_server_adapter", object)
"""Where an application keeps its adapter; one built by hand may use the plain name."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def _adapter(request: web.Request) -> Any:
    return request.app.get(ADAPTER) or request.app.get("api_server_adapter")


def cors_headers(host: Any, origin: str) -> dict[str, str]:
    """Return the headers that let a page of ``origin`` read the answer; none for a foreign one."""
    if not origin or not host._origin_allowed(origin):
        return {}
    headers = {
        "Access-Control-Allow-Origin": "*" if "*" in host._cors_origins else origin,
        "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE, OPTIONS",
        "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
        "Access-Control-Expose-Headers": _EXPOSED_HEADERS,
        "Access-Control-Max-Age": "600",
    }
    if "*" not in host._cors_origins:
        headers["Vary"] = "Origin"
    return headers


def stream_headers(host: Any, request: web.Request) -> dict[str, str]:
    """Return the headers of an event stream, which no middleware can add once it has begun."""
    return {
        "Content-Type": "text/event-stream",
        "Cache-Control": "no-cache",
        "X-Accel-Buffering": "no",
        **SECURITY_HEADERS,
        **cors_headers(host, request.headers.get("Origin", "")),
    }


@web.middleware
async def cors_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer preflights, refuse foreign origins, let allowed ones read every answer."""
    host = _adapter(request)
    origin = request.headers.get("Origin", "")
    if host is None:
        return await handler(request)
    if origin and not host._origin_allowed(origin):
        return error_response(
            "This origin is not allowed. Add it to cors_origins (API_SERVER_CORS_ORIGINS).",
            status=403,
            code="origin_not_allowed",
        )
    if request.method == "OPTIONS":
        return web.Response(status=200, headers=cors_headers(host, origin))
    response = await handler(request)
    if origin and not response.prepared:
        response.headers.update(cors_headers(host, origin))
    return response


@web.middleware
async def security_headers_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Set the security headers; an event stream carries them from its start."""
    response = await handler(request)
    if not response.prepared:
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
    return response


@web.middleware
async def error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error into JSON with a code; the log has what the client must not see."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _http_error(request, error)
    except RequestError as error:
        return request_error_response(error)
    except HermesError as error:
        return error_response(error.message, status=status_of(error), code=error.code)
    except ConnectionResetError:
        raise
    except Exception as error:  # noqa: BLE001 - the HTTP edge
        _log.error("%s %s failed", request.method, request.path, exc_info=error)
        return error_response(
            "The server failed; its log says why.", status=500, code="internal_error"
        )


def _http_error(request: web.Request, error: web.HTTPException) -> web.Response:
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return error_response(
            f"{request.method} is not possible here; {request.path} takes {allowed}.",
            status=405,
            code="method_not_allowed",
            headers={"Allow": allowed},
        )
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return error_response(
            "The request body is larger than this server takes (10,000,000 bytes).",
            status=413,
            code="body_too_large",
        )
    if error.status == 404:
        return error_response(_not_found(request), status=404, code="not_found")
    return error_response(error.reason, status=error.status)


def _not_found(request: web.Request) -> str:
    tail = request.path.rstrip("/").rsplit("/v1", 1)[-1].removeprefix("/")
    known = {route.resource.canonical for route in request.app.router.routes() if route.resource}
    meant = f"/v1/{tail}"
    hint = f" Did you mean {meant}?" if meant in known and meant != request.path else ""
    return f"This is a Hermes API server; it has no {request.path}.{hint} GET /v1/models works."


@web.middleware
async def host_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Without a key, serve only requests addressed to this machine (against DNS rebinding)."""
    host = _adapter(request)
    if host is None or host._api_key:
        return await handler(request)
    name = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    if name in _LOOPBACK or name == host._host:
        return await handler(request)
    return error_response(
        "Without an API key this server answers only to localhost.",
        status=403,
        code="host_not_allowed",
    )
