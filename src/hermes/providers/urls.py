"""An endpoint's address as people write it, made one that requests can be built on.

Nothing is resolved or connected to here.
"""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit, urlunsplit

from hermes.errors import ConfigError

_OPERATION = re.compile(
    r"/(?:chat/completions|completions|responses|messages|models|embeddings)$", re.IGNORECASE
)
_VERSION = re.compile(r"/v\d+[a-z0-9]*$", re.IGNORECASE)
_DOUBLED = re.compile(r"(/v\d+)\1$")
_LOCAL_NAMES = frozenset({"localhost", "host.docker.internal", "host.containers.internal"})
_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def normalise_base_url(text: str, *, anthropic: bool = False) -> str:
    """Return the address that operations such as ``/chat/completions`` are added to.

    A missing scheme, a trailing slash, a pasted operation and a missing or doubled ``/v1`` are
    put right. A path that is not empty is left as it is, but the Anthropic protocol has its
    version there always.

    Raises:
        ConfigError: it is not an http or https address, or holds a user name or a password.
    """
    url = text.strip()
    if "://" not in url:
        url = f"{'http' if _is_local_host(_host_of('//' + url)) else 'https'}://{url}"
    parts = _split(url)
    path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
    path = _DOUBLED.sub(r"\1", _OPERATION.sub("", path))
    if not path or (anthropic and not _VERSION.search(path)):
        path += "/v1"
    return urlunsplit((parts.scheme.lower(), parts.netloc, path, parts.query, ""))


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        usable = usable and parts.port != 0
    except ValueError:
        usable, parts = False, SplitResult("", "", "", "", "")
    if not usable or re.search(r"[\x00-\x20\x7f]", url):
        raise ConfigError(
            "base_url is not a usable address; it should look like https://host/v1.",
            code="bad_base_url",
        )
    if "@" in parts.netloc:
        raise ConfigError(
            "base_url holds a user name or password; put credentials into api_key or headers.",
            code="bad_base_url",
        )
    return parts


def operation_url(base_url: str, operation: str) -> str:
    """Return ``base_url`` with ``operation`` (``/models``) behind its path; a query stays last."""
    head, mark, query = base_url.partition("?")
    return f"{head}{operation}{mark}{query}"


def location(base_url: str) -> str:
    """Return host and port, for messages."""
    return urlsplit(base_url).netloc.rpartition("@")[2]


def is_local(base_url: str) -> bool:
    """Whether the address is of this machine or a private network."""
    return _is_local_host(_host_of(base_url))


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _is_local_host(host: str) -> bool:
    if host in _LOCAL_NAMES or host.endswith(_LOCAL_SUFFIXES):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_private or address.is_loopback or address.is_unspecified
