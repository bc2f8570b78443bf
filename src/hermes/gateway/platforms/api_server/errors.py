"""Error answers: the envelope that OpenAI clients read, from any of our errors.

What a stream says when it fails in the middle is for its writer.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from hermes.errors import HermesError, RequestError
from hermes.redaction import redact

_TYPES = {400: "invalid_request_error", 401: "invalid_request_error", 403: "permission_error",
          404: "invalid_request_error", 405: "invalid_request_error", 409: "conflict_error",
          413: "invalid_request_error", 429: "rate_limit_error"}  # fmt: skip


def _redact_api_error_text(value: object, limit: int = 500) -> str:
    """Return the text of an error for a client: secrets masked, then cut to ``limit`` characters.

    Masking does not depend on any setting.
    """
    return redact(str(value))[:limit]


def error_object(
    message: str, *, status: int, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """Return OpenAI's error object with all four keys."""
    return {
        "message": _redact_api_error_text(message),
        "type": _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error"),
        "param": param or None,
        "code": code or None,
    }


def error_response(
    message: str,
    *,
    status: int,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
    hermes: Mapping[str, Any] | None = None,
) -> web.Response:
    """Return the JSON answer of an error; ``hermes`` adds facts about a turn that failed."""
    error = error_object(message, status=status, code=code, param=param)
    if hermes is not None:
        error["hermes"] = dict(hermes)
    return web.Response(
        status=status,
        body=orjson.dumps({"error": error}),
        content_type="application/json",
        headers=headers,
    )


def request_error_response(error: RequestError) -> web.Response:
    """Return the answer to a request that cannot be served as it stands."""
    code = None if error.code == "invalid_request" else error.code
    return error_response(error.message, status=error.status, code=code, param=error.param)


_STATUS = {
    "context_length_exceeded": 400,
    "content_filter": 400,
    "unknown_provider": 400,
    "rate_limited": 429,
    "overloaded": 503,
    "no_model": 503,
    "provider_timeout": 504,
    "provider_stalled": 504,
    "budget_time": 504,
    "cancelled": 500,
    "internal_error": 500,
    "turn_failed": 500,
}


def status_of(error: HermesError) -> int:
    """Return the HTTP status that tells a client what became of its turn.

    An upstream's refusal of *our* key is a 502: the client's own key is in order.
    """
    if isinstance(error, RequestError):
        return error.status
    return _STATUS.get(error.code, 502)
