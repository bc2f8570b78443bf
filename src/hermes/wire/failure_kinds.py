"""Which kind of failure an endpoint's status, code and words stand for.

Tables of what endpoints are known to say; no parsing of bodies and no error objects.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from hermes.wire.jsonvalue import as_text
from hermes.wire.refusals import refused_parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A classified failure; ``status`` is the nearest HTTP status where none was sent."""

    code: str
    retryable: bool = False
    status: int = 500
    parameter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """Words that mean ``kind`` under any of ``statuses``; 0 is an error without a status."""

    kind: Kind
    words: re.Pattern[str]
    statuses: frozenset[int]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_REQUEST = frozenset({0, 400, 404, 413, 422, 500, 501, 503})
_LIMIT = frozenset({0, 400, 402, 403, 429})
_SERVER = frozenset({0, 400, *range(500, 600)})

_RATE_LIMITED = Kind(code="rate_limited", retryable=True, status=429)

_SAME_REQUEST_FAILS_AGAIN = (
    _Rule(
        kind=Kind(code="context_length_exceeded", status=400),
        statuses=_REQUEST,
        words=_any(
            r"context[_ ](?:length|size|window|limit)|maximum context|exceed_context",
            r"(?:prompt|input) is too long|(?:prompt|input) too long|too many (?:input )?tokens",
            r"reduce the length of (?:the|your)|longer than the model'?s|max_model_len",
            r"input token count.{0,40}exceeds|exceeds the (?:model'?s )?maximum.{0,30}tokens",
            r"larger than the (?:model'?s )?(?:maximum )?context|request_too_large",
        ),
    ),
    _Rule(
        kind=Kind(code="invalid_signature", status=400),
        statuses=frozenset({0, 400, 422}),
        words=_any(
            r"(?:invalid|missing|incorrect|corrupted).{0,20}signature",
            r"signature.{0,40}(?:invalid|required)|thought_signature|invalid_encrypted_content",
            r"thinking.{0,30}blocks?.{0,60}(?:cannot be modified|must (?:match|remain))",
            r"encrypted content.{0,40}(?:could not|verif|decrypt)",
        ),
    ),
    _Rule(
        kind=Kind(code="content_filter", status=400),
        statuses=frozenset({0, 400, 403}),
        words=_any(
            r"content_filter|content_policy|content management policy|responsibleaipolicy",
            r"data_inspection_failed|prompt_blocked|blocked by (?:our )?(?:safety|content)",
            r"safety_violation",
        ),
    ),
)

_TEMPLATE = _Rule(
    kind=Kind(code="provider_request", status=400),
    statuses=_REQUEST,
    words=_any(r"jinja|chat[_ ]template|rendering prompt|template (?:render|error)"),
)

_LIMITS = (
    _Rule(kind=_RATE_LIMITED, statuses=_LIMIT | _SERVER, words=_any("throttl")),
    _Rule(
        kind=_RATE_LIMITED,
        statuses=frozenset({429}),
        words=_any(
            r"temporar|upstream|overload|capacity",
            r"per[- ]min|per[- ]second|\b[rt]pm\b",
        ),
    ),
    _Rule(
        kind=Kind(code="quota_exhausted", status=429),
        statuses=_LIMIT,
        words=_any(
            r"insufficient_quota|exceeded your current quota|quota_exceeded|allocationquota",
            r"credit balance|insufficient (?:balance|credits?|funds)|requires more credits",
            r"billing|out of credits|quota (?:is |has been )?(?:exhausted|exceeded)",
            r"payment required|(?:usage|spending) limit",
        ),
    ),
    _Rule(
        kind=Kind(code="authentication", status=401),
        statuses=frozenset({0, 400, 403}),
        words=_any(
            r"(?:invalid|incorrect)[_ ]api[_ ]key|invalid x-api-key|api_key_invalid",
            r"api key (?:not valid|expired|is invalid|not found)|no auth credentials",
            r"unauthenticated|invalid token\b",
        ),
    ),
    _Rule(
        kind=Kind(code="overloaded", retryable=True, status=529),
        statuses=_SERVER,
        words=_any(
            r"overloaded|at capacity|(?:model|server) is busy|slow_down",
            r"loading model|model is (?:still |currently )?loading",
        ),
    ),
)

_BY_STATUS = {
    401: Kind(code="authentication"),
    402: Kind(code="quota_exhausted"),
    403: Kind(code="permission"),
    404: Kind(code="not_found"),
    408: Kind(code="provider_request", retryable=True),
    409: Kind(code="provider_request", retryable=True),
    413: Kind(code="context_length_exceeded"),
    425: Kind(code="provider_request", retryable=True),
    429: _RATE_LIMITED,
    501: Kind(code="provider_server"),
    503: Kind(code="overloaded", retryable=True),
    505: Kind(code="provider_server"),
    529: Kind(code="overloaded", retryable=True),
}

_STATUS_WORDS = {
    "overloaded_error": 529,
    "rate_limit": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "insufficient_quota": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "billing_error": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "not_found": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "internal": 500,
    "unavailable": 503,
    "service_unavailable": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
}


def status_of(source: dict[str, Any]) -> int:
    """Return the HTTP status that an error object names, as a number or by a known word, else 0."""
    for name in ("status", "status_code", "http_status", "http_code", "code"):
        value = source.get(name)
        if isinstance(value, str) and len(value) == 3 and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    for name in ("type", "code", "status", "error_type"):
        word = as_text(source.get(name)).lower()
        if word in _STATUS_WORDS:
            return _STATUS_WORDS[word]
    return 0


def classify(*, status: int, code: str, message: str, parameter: str, has_hint: bool) -> Kind:
    """Return the kind of a failure.

    ``status`` 0 means that none was sent; ``code`` is every code or type that the answer holds;
    ``parameter`` the one it names; ``has_hint`` whether it names a time to wait.
    """
    message = message[:4000]
    words = f"{code} {message}".lower()
    kind = _first(_SAME_REQUEST_FAILS_AGAIN, status, words)
    if kind is None and status in _REQUEST:
        refused = refused_parameter(code, message, parameter)
        if refused:
            kind = Kind(code="unsupported_parameter", status=400, parameter=refused)
    kind = kind or _first((_TEMPLATE, *_LIMITS), status, words) or _by_status(status)
    if kind.code == "quota_exhausted" and status == 429 and has_hint:
        kind = _RATE_LIMITED  # A quota that refills within seconds is a rate limit.
    return replace(kind, status=status or kind.status)


def _first(rules: tuple[_Rule, ...], status: int, words: str) -> Kind | None:
    for rule in rules:
        if status in rule.statuses and rule.words.search(words):
            return rule.kind
    return None


def _by_status(status: int) -> Kind:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 400 <= status < 500:
        return Kind(code="provider_request")
    return Kind(code="provider_server", retryable=True)
