"""What ``hermes doctor`` looks at on this machine; each check says what it found and what to do.

Checks only look: they make no file, start nothing and change nothing.
"""

import asyncio
import importlib.util
import platform
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import aiohttp

from hermes.errors import ConfigError, HermesError
from hermes.hermes_cli import auth, config, dotenv_file
from hermes.hermes_cli.commands import endpoints
from hermes.hermes_cli.config import LoadedSettings
from hermes.hermes_cli.private_file import is_open_to_others
from hermes.providers.local_catalogue import find_weights
from hermes.providers.local_detect import Detection
from hermes.providers.local_machine import find_problem, read_machine
from hermes.providers.local_weights import weights_path
from hermes.redaction import redact
from hermes.sessions.opening import DATABASE_NAME, open_store
from hermes.wire.jsonvalue import as_object, as_text, parse

_LIMIT = 5.0
_LEAST_DISK = 200_000_000
_LOW_DISK = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report; ``advice`` is the next step, "" when there is none."""

    check: str
    status: Literal["ok", "warn", "fail"]
    text: str
    advice: str = ""


def python() -> Iterator[Finding]:
    """The interpreter and the optional packages."""
    version = platform.python_version()
    known = sys.version_info >= (3, 11)
    yield Finding(
        check="python",
        status="ok" if known else "fail",
        text=f"Python {version} on {platform.system()} {platform.machine()}",
        advice="" if known else "Hermes needs Python 3.11 or newer.",
    )
    extras = {
        "uvloop": "faster event loop",
        "xllamacpp": "extra local",
        "psycopg": "extra postgres",
    }
    missing = [f"{name} ({use})" for name, use in extras.items() if not _is_installed(name)]
    text = f"not installed: {', '.join(missing)}" if missing else "all optional packages are here"
    yield Finding(check="extras", status="ok", text=text)


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def home(place: Path) -> Iterator[Finding]:
    """The home folder, who may look into it, and the room on its disk."""
    if not place.is_dir():
        yield Finding(check="home", status="ok", text=f"{place} is made at the first start")
    elif is_open_to_others(place):
        yield Finding(
            check="home",
            status="warn",
            text=f"{place} is open to other users of this computer",
            advice=f"chmod 700 {place}",
        )
    else:
        yield Finding(check="home", status="ok", text=f"{place} is yours alone")
    for name in (dotenv_file.FILE_NAME, config.FILE_NAME):
        path = place / name
        if path.is_file() and is_open_to_others(path):
            severe = name == dotenv_file.FILE_NAME
            yield Finding(
                check=name,
                status="fail" if severe else "warn",
                text=f"{path} can be read by other users",
                advice=f"chmod 600 {path}",
            )
    yield _disk(place)


def _disk(place: Path) -> Finding:
    there = next(path for path in (place, *place.parents) if path.exists())
    free = shutil.disk_usage(there).free
    status = "fail" if free < _LEAST_DISK else "warn" if free < _LOW_DISK else "ok"
    advice = "" if status == "ok" else "Free some space: conversations and models are kept there."
    text = f"{free / 1e9:.1f} GB free under {there}"
    return Finding(check="disk", status=status, text=text, advice=advice)


def settings(loaded: LoadedSettings) -> Iterator[Finding]:
    """Warnings of the settings, the working folder, the server's key and address."""
    for warning in loaded.warnings:
        yield Finding(check="settings", status="warn", text=warning, advice="hermes config check")
    if not loaded.warnings:
        yield Finding(
            check="settings", status="ok", text="config.yaml, .env and variables are good"
        )
    workdir = Path(loaded.settings.terminal.cwd).expanduser()
    if not workdir.is_dir():
        yield Finding(
            check="terminal",
            status="fail",
            text=f"terminal.cwd is not a folder: {workdir}",
            advice="hermes config set terminal.cwd FOLDER",
        )
    yield _key(loaded)


def _key(loaded: LoadedSettings) -> Finding:
    extra = loaded.settings.platforms.api_server.extra
    key = extra.key or ""
    try:
        auth.check_binding(extra.host, key)
        if key:
            auth.check_server_key(key)
    except ConfigError as error:
        if key:
            advice = f"hermes config unset {auth.KEY_VARIABLE}"
            return Finding(check="key", status="fail", text=error.message, advice=advice)
        advice = "'hermes serve' makes a key before it listens."
        return Finding(check="key", status="warn", text=error.message, advice=advice)
    text = "API_SERVER_KEY is strong" if key else "no API_SERVER_KEY yet: 'hermes serve' makes one"
    return Finding(check="key", status="ok", text=text)


async def port(loaded: LoadedSettings) -> Finding:
    """Whether the port is free, or a server of ours has it."""
    extra = loaded.settings.platforms.api_server.extra
    place = f"{extra.host}:{extra.port}"
    problem = await asyncio.to_thread(_bind_problem, extra.host, extra.port)
    if not problem:
        return Finding(check="port", status="ok", text=f"{place} is free")
    version = await _version_at(extra.host, extra.port)
    if version:
        return Finding(check="port", status="ok", text=f"Hermes {version} listens on {place}")
    return Finding(
        check="port",
        status="fail",
        text=f"{place} cannot be used ({problem})",
        advice="Choose another: hermes config set platforms.api_server.extra.port NUMBER",
    )


def _bind_problem(host: str, number: int) -> str:
    try:
        found = socket.getaddrinfo(
            host or None, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in found[:1]:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                probe.listen(1)
    except OSError as error:
        return error.strerror or str(error)
    return ""


async def _version_at(host: str, number: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    address = f"[{name}]" if ":" in name else name
    timeout = aiohttp.ClientTimeout(total=1.0)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"http://{address}:{number}/health") as response,
        ):
            answer = as_object(parse(await response.content.read(65536)))
    except (aiohttp.ClientError, OSError, TimeoutError, HermesError):
        return ""
    if as_text(answer.get("platform")) != "hermes-agent":
        return ""
    return as_text(answer.get("version")) or "(of unknown version)"


def database_place(loaded: LoadedSettings) -> str | Path | None:
    """Return where the conversations are, or None for a file that is not there yet."""
    url = loaded.settings.sessions.database_url.get_secret_value()
    file = loaded.home / DATABASE_NAME
    return url or (file if file.exists() else None)


async def database(place: str | Path | None) -> Finding:
    """Whether the database of conversations opens."""
    if place is None:
        text = f"{DATABASE_NAME} is made at the first start"
        return Finding(check="database", status="ok", text=text)
    is_url = isinstance(place, str)
    name = "sessions.database_url" if is_url else str(place)
    try:
        async with asyncio.timeout(_LIMIT):
            store = await open_store(place)
            await store.aclose()
    except TimeoutError:
        problem = f"did not open within {_LIMIT:g} s"
    except HermesError as error:
        problem = redact(error.message)
    except ImportError:
        problem = "its driver is not installed; pip install 'hermes[postgres]'"
    else:
        return Finding(check="database", status="ok", text=f"{name} opens")
    advice = "Check sessions.database_url." if is_url else "Check the file and the folder's rights."
    return Finding(check="database", status="fail", text=f"{name}: {problem}", advice=advice)


def providers(listings: list[endpoints.Listing]) -> Iterator[Finding]:
    """What the configured endpoints answered."""
    for listing in listings:
        severe = listing.role == endpoints.DEFAULT
        name = f"{listing.name}{f' ({listing.role})' if listing.role else ''}"
        if listing.error:
            yield Finding(
                check="provider",
                status="fail" if severe else "warn",
                text=f"{name}: {listing.error}",
                advice="hermes models shows all endpoints; hermes config set changes them.",
            )
        elif severe and listing.models and listing.model not in (*listing.models, ""):
            yield Finding(
                check="provider",
                status="warn",
                text=f"{name} does not list the model {listing.model}",
                advice="hermes models --all shows what it has.",
            )
        else:
            text = f"{name} answers in {listing.seconds:.1f} s, {len(listing.models)} model(s)"
            yield Finding(check="provider", status="ok", text=text)


def local_model(loaded: LoadedSettings, detection: Detection, *, needed: bool) -> Finding:
    """Whether a model on this computer can answer; a failure only when nothing else is set."""
    wanted = loaded.settings.local
    if detection.usable is not None:
        return Finding(check="local model", status="ok", text=detection.summary())
    if not wanted.enabled:
        text = "switched off (local.enabled)"
        status = "fail" if needed else "ok"
        advice = "Set a provider, or local.enabled: true." if needed else ""
        return Finding(check="local model", status=status, text=text, advice=advice)
    try:
        weights = find_weights(wanted.model)
        problem = find_problem(read_machine(), weights, weights_path(loaded.home, weights.name))
    except HermesError as error:
        problem = error
    if problem is None:
        return Finding(check="local model", status="ok", text=f"{wanted.model} can run here")
    fetched = problem.code == "weights_missing"  # it is fetched at the first start
    status = "ok" if not needed else "warn" if fetched else "fail"
    text = problem.message if needed else f"not needed, a provider is set ({problem.code})"
    advice = "Or set a provider: docs/configuration.md." if needed else ""
    return Finding(check="local model", status=status, text=text, advice=advice)
