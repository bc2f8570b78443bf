"""Who may call: the bearer key, and the guard that refuses to start without a good one.

Keys of single clients with limited powers are not known here.
"""

import hmac
import logging
from typing import Any, Protocol

from aiohttp import web

from hermes.gateway.platforms.api_server.errors import error_response

_log = logging.getLogger(__name__)


class _Guarded(Protocol):
    name: str
    _host: str
    _api_key: str


class _Keyed(Protocol):
    _api_key: str


def check_auth(host: _Keyed, request: web.Request) -> web.Response | None:
    """Return None when the request may pass, else the 401 answer. Time does not tell the key."""
    if not host._api_key:
        return None
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    sent = token.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() == "bearer" and hmac.compare_digest(sent, host._api_key.encode()):
        return None
    _log.warning("refused a request without the right key: %s", _source(request))
    return error_response(
        "Invalid API key. The Authorization header must hold the word Bearer and the server's key, "
        "which stands in its .env as API_SERVER_KEY.",
        status=401,
        code="invalid_api_key",
        headers={"WWW-Authenticate": 'Bearer realm="hermes"'},
    )


def _source(request: Any) -> str:
    remote = getattr(request, "remote", None) or "unknown"
    return f"{str(remote)[:64]} {str(getattr(request, 'path', ''))[:128]}"


def api_key_passes_startup_guard(self: _Guarded) -> bool:
    """Whether the key is good enough to listen with; no check available means no.

    The check is imported here and not above: where it cannot be had, the server must refuse.
    """
    try:
        from ....hermes_cli.auth import is_strong_key  # noqa: TID252 - reached by either name
    except ImportError:
        _log.error("%s: the key cannot be checked, so the server does not start", self.name)
        return False
    if not self._api_key or not is_strong_key(self._api_key):
        _log.error(
            "%s: API_SERVER_KEY is missing or weak. Run 'hermes serve' without one to have a "
            "strong one made, or set one of at least 16 random characters.",
            self.name,
        )
        return False
    return True
