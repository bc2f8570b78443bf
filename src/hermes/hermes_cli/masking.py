"""Secrets made fit to show: that there is one, and of a long one the last four characters.

What counts as a secret by its key is ``key_check``'s, by its look ``hermes.redaction``'s.
"""

import re
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from hermes.hermes_cli.key_check import is_secret
from hermes.redaction import redact

HIDDEN = "***"
_LONG = 24
_PREFIX = re.compile(r"[A-Za-z]{2,4}[-_]")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def mask(secret: str) -> str:
    """Return ``sk-…abcd`` for a long secret, ``***`` for a short one, "" for none."""
    word = secret.strip()
    if len(word) < _LONG:
        return HIDDEN if word else ""
    prefix = _PREFIX.match(word)
    return f"{prefix[0] if prefix else ''}…{word[-4:]}"


def shown(value: Any, place: str = "") -> Any:
    """Return a value of the settings, however deep, with every secret masked.

    ``place`` is its dotted key. A reference such as ``${NAME}`` is no secret.
    """
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: shown(item, f"{place}.{key}" if place else key) for key, item in items}
    if isinstance(value, list | tuple):
        return [shown(item, place) for item in cast("list[Any]", value)]
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    if not isinstance(value, str):
        return value
    if _REFERENCE.fullmatch(value):
        return value
    if "://" in value:
        return _shown_address(value)
    return mask(value) if is_secret(place) or ".env." in place else redact(value)


def _shown_address(address: str) -> str:
    """An address keeps everything but the password in it."""
    try:
        parts = urlsplit(address)
        password = parts.password
    except ValueError:
        return HIDDEN
    if password:
        user, _, host = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user.partition(':')[0]}:{HIDDEN}@{host}")
    return redact(urlunsplit(parts))
