"""Foreign JSON: parsed leniently, read without trust.

It gives what is there in the asked type, or that type's empty value; it never raises over a
member of another type. What the values mean is for the codecs to say.
"""

import json
from typing import Any, cast

import orjson

from hermes.errors import ProviderProtocolError


def parse(raw: bytes) -> Any:
    """Return the JSON value of ``raw``, its strings free of lone surrogates.

    ``orjson`` refuses lone surrogate escapes and bytes that are not UTF-8, which models and
    proxies do send; those become U+FFFD.

    Raises:
        ProviderProtocolError: ``raw`` is not JSON.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        return _scrub(json.loads(raw.decode("utf-8", "replace"), strict=False))
    except (ValueError, RecursionError) as error:
        raise ProviderProtocolError("The endpoint sent broken JSON.") from error


def parse_or_none(raw: bytes) -> Any:
    """Return the JSON value of ``raw``, or ``None`` where it is not JSON."""
    try:
        return parse(raw)
    except ProviderProtocolError:
        return None


def clean_text(text: str) -> str:
    """Return ``text`` with surrogate pairs joined and lone surrogates as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _scrub(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {clean_text(key): _scrub(member) for key, member in members.items()}
    if isinstance(value, list):
        return [_scrub(entry) for entry in cast("list[Any]", value)]
    return value


def as_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return ``value`` if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return ``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Return ``value`` as a number that counts something, else 0."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 2**53:
        return int(value)
    return 0


def as_index(value: Any) -> int:
    """Return ``value`` if it is an integer, else -1."""
    return value if isinstance(value, int) else -1


def dump(value: Any) -> str:
    """Return ``value`` as JSON text."""
    return orjson.dumps(value).decode()


def as_json_text(value: Any) -> str:
    """Return tool arguments as JSON text: text as it stands, a value serialised, ``null`` empty."""
    if isinstance(value, str):
        return value
    return "" if value is None else dump(value)


def is_json(text: str) -> bool:
    """Whether ``text`` is one complete JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
