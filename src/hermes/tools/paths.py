"""Paths that a model names: where they lead, and what cannot be read or written there.

Which places are forbidden is not decided here.
"""

import difflib
import os
import stat
from pathlib import Path

from hermes.tools.base import ToolContext, ToolFailure

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_MAX_SIBLINGS = 2000


def resolve(path: str, context: ToolContext) -> Path:
    """Return the path that a model means: absolute, from the home folder or from the workdir.

    Touches no disk.

    Raises:
        ToolFailure: the text is no path.
    """
    if not path.strip():
        raise ToolFailure("The path is empty.")
    if "\0" in path:
        raise ToolFailure("The path holds a NUL character.")
    home = context.environment.get("HOME", "")
    if home and (path == "~" or path.startswith("~/")):
        return Path(home, path[2:])
    return context.workdir / path


def open_regular(path: Path, shown: str) -> int:
    """Open a regular file for reading and return its descriptor; blocks.

    Devices, pipes and sockets are refused before they are opened, and an open never waits.

    Raises:
        ToolFailure: it does not exist, is not a regular file or may not be read.
    """
    try:
        refuse_irregular(path.stat(), shown)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ToolFailure(_missing(path, shown)) from error
    except OSError as error:
        raise ToolFailure(explain(error, shown)) from error
    try:
        refuse_irregular(os.fstat(descriptor), shown)
    except ToolFailure:
        os.close(descriptor)
        raise
    return descriptor


def refuse_irregular(status: os.stat_result, shown: str) -> None:
    """Raise ``ToolFailure`` unless the status is that of a regular file."""
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "not a file")
    raise ToolFailure(f"{shown} is {kind}, not a regular file.")


def explain(error: OSError, shown: str) -> str:
    """Say in words what the system refused."""
    return f"{shown}: {error.strerror or error}."


def _missing(path: Path, shown: str) -> str:
    """Name the files of the folder that look like the one that is missing."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MAX_SIBLINGS), strict=False)]
    except OSError:
        return f"{shown} does not exist, nor does its folder."
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    return f"{shown} does not exist." + (f" Near it: {', '.join(near)}." if near else "")
