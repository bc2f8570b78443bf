"""A file replaced as a whole, so that a reader sees the old content or the new, never half.

Blocks; the tools call it in the pool.
"""

import errno
import os
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

from hermes.ids import new_id
from hermes.tools.base import ToolFailure
from hermes.tools.blocking import Stop
from hermes.tools.paths import explain, refuse_irregular

_IN_PLACE = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS}
"""The folder takes no new file or the file is a mount point; the file itself may be writable."""

_LOCK_SECONDS = 30.0


class _PathLock:
    """A lock that lives as long as somebody uses it."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


_locks: WeakValueDictionary[str, _PathLock] = WeakValueDictionary()
_locks_guard = threading.Lock()


@contextmanager
def locked(path: Path, shown: str, stop: Stop) -> Generator[Path, None, None]:
    """Hold the right to change a file, by any name, among all threads; yield its real path.

    Raises:
        ToolFailure: another change of the file does not come to an end.
    """
    real = os.path.realpath(path)
    with _locks_guard:
        own = _locks.get(real)
        if own is None:
            own = _locks[real] = _PathLock()
    waited = 0.0
    while not own.lock.acquire(timeout=0.1):
        stop.check()
        waited += 0.1
        if waited >= _LOCK_SECONDS:
            raise ToolFailure(f"{shown} is being changed by another call; try again.")
    try:
        yield Path(real)
    finally:
        own.lock.release()


def status_of(path: Path, shown: str) -> os.stat_result | None:
    """Return the status of a regular file, or ``None`` when there is none.

    Raises:
        ToolFailure: something else is there, or the place cannot be looked at.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolFailure(explain(error, shown)) from error
    refuse_irregular(status, shown)
    return status


def replace_file(path: Path, shown: str, data: bytes, stop: Stop) -> None:
    """Put ``data`` where ``path`` leads, keeping the mode and owner of a file that was there.

    Missing folders are made. When the work is stopped before the last step, nothing has changed.

    Raises:
        ToolFailure: the system refuses.
    """
    status = status_of(path, shown)
    if status is not None and not os.access(path, os.W_OK):
        raise ToolFailure(f"{shown} is read-only.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _replace(path, data, status, stop)
        except OSError as error:
            if status is None or error.errno not in _IN_PLACE:
                raise
            _overwrite(path, data)
    except OSError as error:
        raise ToolFailure(explain(error, shown)) from error


def _replace(path: Path, data: bytes, status: os.stat_result | None, stop: Stop) -> None:
    temporary = path.parent / new_id(".hermes-", 6)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if status else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if status is not None:
                with suppress(OSError):
                    os.fchown(file.fileno(), status.st_uid, status.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
        stop.check()
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _overwrite(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.truncate()
