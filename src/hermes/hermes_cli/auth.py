"""The API server's key: made, kept and judged; and where a server may listen without one.

Keys of model providers are settings like any other and are not judged here.
"""

import hmac
import ipaddress
import re
import secrets
from pathlib import Path
from typing import NamedTuple

from hermes.errors import ConfigError
from hermes.hermes_cli import dotenv_file
from hermes.hermes_cli.private_file import held_lock

KEY_VARIABLE = "API_SERVER_KEY"
MINIMUM_LENGTH = 16
_MINIMUM_DISTINCT = 8
_LONGEST_PERIOD = 6

_PLACEHOLDER = re.compile(
    r"change[-_ ]?me|place[-_ ]?holder|(?:your|my|some|an?|the)[-_ ]+(?:\w+[-_ ]+){0,2}"
    r"(?:key|token|secret)|your(?:api)?key|example|pass[-_ ]?word|(?:api|server|secret|test|dummy|"
    r"fake|sample)[-_ ](?:\w+[-_ ]){0,2}key|insert|replace[-_ ]?(?:me|with)|x{4}|\*{3}|\.{3}|"
    r"^to[-_ ]?do|12345678|abcdefgh|qwerty|^<.*>$|^\$?\{.*\}$",
    re.IGNORECASE,
)


class ServerKey(NamedTuple):
    """The server's key, the file that holds it, and whether it has just been made."""

    key: str
    path: Path
    created: bool

    def __repr__(self) -> str:
        return f"ServerKey(path={self.path!r}, created={self.created!r})"


def is_strong_key(key: str) -> bool:
    """Whether a key cannot be guessed: long, varied, and not a sample that was left in."""
    word = key.strip()
    return (
        len(word) >= MINIMUM_LENGTH
        and len(set(word)) >= _MINIMUM_DISTINCT
        and not _repeats(word)
        and not _PLACEHOLDER.search(word)
    )


def _repeats(word: str) -> bool:
    return any(
        all(char == word[index % period] for index, char in enumerate(word))
        for period in range(1, _LONGEST_PERIOD + 1)
    )


def check_server_key(key: str) -> None:
    """Refuse a key that is missing or weak.

    Raises:
        ConfigError: ``api_server_key_invalid``; the message says what to do and not the key.
    """
    if is_strong_key(key):
        return
    fault = "too weak for a server that runs commands" if key.strip() else "missing"
    raise ConfigError(
        f"{KEY_VARIABLE} is {fault}. Use at least {MINIMUM_LENGTH} random characters, or remove "
        "it ('hermes config unset platforms.api_server.extra.key') and start 'hermes serve': it "
        "makes a strong one.",
        code="api_server_key_invalid",
    )


def ensure_server_key(home: Path) -> ServerKey:
    """Return the key in ``home``'s .env; where there is none, make and store one.

    Safe against a second process that does the same.

    Raises:
        ConfigError: the stored one is weak, or the file cannot be read or written.
    """
    path = home / dotenv_file.FILE_NAME
    with held_lock(home):
        stored = dotenv_file.read_variables(home).get(KEY_VARIABLE, "").strip()
        if stored:
            check_server_key(stored)
            return ServerKey(stored, path, created=False)
        key = _new_key()
        dotenv_file.replace_variable(home, KEY_VARIABLE, key)
    return ServerKey(key, path, created=True)


def _new_key() -> str:
    while True:
        key = secrets.token_urlsafe(32)
        if is_strong_key(key):  # one in some thousand holds a word like "xxxx" by chance
            return key


def constant_time_equal(left: str, right: str) -> bool:
    """Compare two keys in a time that does not tell where they differ; any text may be given."""
    return hmac.compare_digest(
        left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    )


def is_loopback(host: str) -> bool:
    """Whether a server that listens on ``host`` is reached from this machine alone.

    Names are not looked up: of them only ``localhost`` counts.
    """
    name = host.strip().strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def check_binding(host: str, key: str) -> None:
    """Refuse to listen where others can reach the server unless a strong key guards it.

    Raises:
        ConfigError: ``open_binding`` without a key, ``api_server_key_invalid`` with a weak one.
    """
    if is_loopback(host):
        return
    if not key.strip():
        raise ConfigError(
            f"Refusing to listen on {host or 'every address'} without a key: everybody who "
            f"reaches it could run commands. Set {KEY_VARIABLE} to at least {MINIMUM_LENGTH} "
            "random characters, or listen on 127.0.0.1.",
            code="open_binding",
        )
    check_server_key(key)
