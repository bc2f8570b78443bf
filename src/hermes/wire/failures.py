"""An endpoint's failures: HTTP answers and error objects in a stream, classified by kind.

It says what happened and whether a retry can help; it does not retry, wait or remember.
Messages are redacted and bounded, and no header or URL of the request is ever in them.
"""

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermes.errors import ProviderProtocolError, ProviderStatusError
from hermes.redaction import excerpt
from hermes.wire.failure_kinds import classify, status_of
from hermes.wire.jsonvalue import as_list, as_object, as_text, parse

MAX_MESSAGE_CHARS = 500

_MARKUP = re.compile(r"(?is)<(script|style)\b(?:(?!<\1\b).)*?</\1>|<[^>]{0,500}>")
_SPACE = re.compile(r"\s+")
_HINT = re.compile(
    r"(?i)(?:try again|retry|wait)[a-z ]{0,20}?\s(?:(\d{1,4})m)?(\d{1,6}(?:\.\d{1,6})?)\s?"
    r"(ms|milliseconds|s|secs?|seconds)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """What an error object says, in whichever of the known shapes it says it."""

    message: str
    code: str = ""
    status: int = 0
    parameter: str = ""
    retry_after: float | None = None


def status_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderStatusError:
    """Return the error for an HTTP answer with a failure status.

    ``headers`` may be in any case. ``retryable`` follows ``x-should-retry`` where it is sent.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    fields = _read_body(body)
    error = _error(fields, status, empty=not body.strip())
    delay = _retry_after(lower)
    if delay is not None:
        error.retry_after = delay
    wish = lower.get("x-should-retry", "").strip().lower()
    if wish in ("true", "false"):
        error.retryable = wish == "true"
    return error


def event_error(obj: object, *, status: int = 0, named: bool = False) -> ProviderStatusError | None:
    """Return the error that an object in a stream or in a 200 answer stands for, or ``None``.

    ``named``: the event itself was named an error, so whatever ``obj`` holds is one. ``status``
    is the status that came beside it, if one did.
    """
    fields = _read(obj)
    if fields is None and named:
        fields = _Fields(message=obj if isinstance(obj, str) else "")
    return None if fields is None else _error(fields, status)


def _error(fields: _Fields, status: int, *, empty: bool = False) -> ProviderStatusError:
    status = status or fields.status
    kind = classify(
        status=status,
        code=fields.code,
        message=fields.message,
        parameter=fields.parameter,
        has_hint=fields.retry_after is not None,
    )
    status = status or kind.status
    code, retryable = kind.code, kind.retryable
    if empty and status == 400:  # A reused connection that the server had already closed.
        code, retryable = "provider_request", True
    message = excerpt(fields.message, MAX_MESSAGE_CHARS) or f"The endpoint answered {status}."
    return ProviderStatusError(
        message,
        status=status,
        code=code,
        retryable=retryable,
        retry_after=fields.retry_after,
        parameter=kind.parameter,
    )


def _read_body(body: bytes) -> _Fields:
    try:
        value = parse(body)
    except ProviderProtocolError:
        return _Fields(message=_plain(body.decode("utf-8", "replace")))
    value = next(iter(as_list(value)), value)  # Gemini wraps its error in an array.
    fields = _read(value)
    if fields is not None:
        return fields
    return _Fields(message=value if isinstance(value, str) else _plain(body.decode("utf-8")))


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _MARKUP.sub(" ", text)).strip()


def _read(obj: object) -> _Fields | None:
    """The error in one of the shapes that endpoints are known to use, else ``None``."""
    outer = as_object(obj)
    error = outer.get("error")
    if isinstance(error, str) and error:
        return _fields(outer, message=as_text(outer.get("message")) or error, code=error)
    if isinstance(error, dict) and error:
        return _fields({**_envelope(outer), **as_object(error)})
    return _fields(outer) if _is_bare_error(outer) else None


def _is_bare_error(outer: dict[str, Any]) -> bool:
    if "error" in (outer.get("type"), outer.get("object")):
        return True
    if outer.get("error_type") or outer.get("error_message"):
        return True
    if "choices" in outer:
        return False
    has_code = outer.get("code") or outer.get("status") or outer.get("status_code")
    return bool(outer.get("detail") or outer.get("errors") or (has_code and outer.get("message")))


def _envelope(outer: dict[str, Any]) -> dict[str, Any]:
    kept = ("status", "status_code", "http_status", "param")
    return {name: outer[name] for name in kept if name in outer}


def _fields(source: dict[str, Any], *, message: str = "", code: str = "") -> _Fields:
    metadata = as_object(source.get("metadata"))
    names = [source.get(name) for name in ("code", "type", "error_type", "status")]
    words = [name for name in names if isinstance(name, str)]
    text = message or _message(source)
    raw = metadata.get("raw")  # OpenRouter keeps the words of the provider behind it here.
    if isinstance(raw, str) and raw and raw not in text:
        text = f"{text}: {raw}" if text else raw
    return _Fields(
        message=text,
        code=" ".join([code, *words]).strip(),
        status=status_of(source),
        parameter=as_text(source.get("param")),
        retry_after=_hint(source, text),
    )


def _message(source: dict[str, Any]) -> str:
    for name in ("message", "error_message", "detail", "msg", "error", "title", "errors"):
        value = source.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, dict):
            inner = _message(as_object(value))
            if inner:
                return inner
        if isinstance(value, list):
            entries = (_message(as_object(entry)) or as_text(entry) for entry in as_list(value))
            return "; ".join(entry for entry in entries if entry)
    return ""


def _hint(source: dict[str, Any], text: str) -> float | None:
    """Seconds to wait that the body names: Google's RetryInfo, or words such as "in 20s"."""
    for detail in as_list(source.get("details")):
        delay = as_text(as_object(detail).get("retryDelay"))
        if delay.endswith("s"):
            return _seconds(delay[:-1])
    found = _HINT.search(text[:4000])
    if found is None:
        return None
    minutes, amount, unit = found.groups()
    seconds = float(amount) / 1000 if unit.lower().startswith("m") else float(amount)
    return seconds + 60 * int(minutes or 0)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _seconds(value)
    if seconds is not None or not value:
        return seconds
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
