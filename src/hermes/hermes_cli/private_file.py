"""Files that only their owner may read, changed whole or not at all.

What stands in them is of no concern here.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

from hermes.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows: the last writer wins there
    fcntl = None


def make_private_directory(path: Path) -> None:
    """Make a folder and its parents; a new one is open to its owner alone."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_private(path: Path, text: str) -> None:
    """Put ``text`` in place of the file with mode 600; a crash leaves the old or the new one.

    A symbolic link stays one: the file that it points to is replaced.

    Raises:
        ConfigError: the file cannot be written.
    """
    target = path.resolve()
    try:
        make_private_directory(target.parent)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.chmod(0o600)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror or error}.") from error


@contextlib.contextmanager
def held_lock(home: Path) -> Generator[None]:
    """Keep other writers of the settings in ``home`` waiting meanwhile."""
    if fcntl is None:
        yield
        return
    try:
        make_private_directory(home)
        handle = os.open(home / ".settings.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"Cannot write into {home}: {error.strerror or error}.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_open_to_others(path: Path) -> bool:
    """Whether the group or everybody may read or write ``path``."""
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
