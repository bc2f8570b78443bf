"""A program that searches files and writes what it finds as JSON lines.

It runs in a process of its own because a regular expression may take forever and holds the
interpreter while it does. Started by path, it may import the standard library only. It knows
nothing of tools.

One argument, a JSON object: ``mode`` (content or files), ``pattern``, ``root``, ``glob``. Lines are
``{"path", "line", "text", "start"}``, ``{"path"}`` or, last, ``{"error"}``.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator

SKIPPED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache"}
)
"""Folders that are not entered: histories, caches and installed packages."""

_LINE_BYTES = 1_000_000
_TEXT_CHARS = 20_000
_BINARY_SAMPLE = 8192


def translate(glob: str) -> str:
    """Return a glob as a regular expression over a path with ``/``.

    ``*`` and ``?`` stay within a name, ``**`` crosses folders, ``{a,b}`` are alternatives. A glob
    without ``/`` is for the name at any depth.
    """
    if "/" not in glob:
        glob = "**/" + glob
    glob = glob.removeprefix("./").removeprefix("/")
    out: list[str] = []
    index = depth = 0
    while index < len(glob):
        piece, index, depth = _translate_one(glob, index, depth)
        out.append(piece)
    return "".join(out) + ")" * depth + r"\Z"


def _translate_one(glob: str, index: int, depth: int) -> tuple[str, int, int]:
    if glob.startswith("**/", index):
        return "(?:.*/)?", index + 3, depth
    if glob.startswith("**", index):
        return ".*", index + 2, depth
    char = glob[index]
    if char == "[":
        end = glob.find("]", index + 2)
        if end > 0:
            inner = glob[index + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            return f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]", end + 1, depth
    if char == "{" and "}" in glob[index:]:
        return "(?:", index + 1, depth + 1
    if depth and char in "},":
        return ("|", index + 1, depth) if char == "," else (")", index + 1, depth - 1)
    plain = {"*": "[^/]*", "?": "[^/]"}
    return plain.get(char) or re.escape(char), index + 1, depth


def walk(root: str) -> Iterator[tuple[str, str]]:
    """Yield each regular file as its path and its path below ``root``, in order of names."""
    if not os.path.isdir(root):  # noqa: PTH112 - strings are faster than paths, by far
        yield root, os.path.basename(root)  # noqa: PTH119
        return
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(os.path.join(root, folder)), key=_name)  # noqa: PTH118
        except OSError:
            continue
        inner: list[str] = []
        for entry in entries:
            below = f"{folder}/{entry.name}" if folder else entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in SKIPPED:
                        inner.append(below)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, below
            except OSError:
                continue
        waiting += reversed(inner)


def _name(entry: "os.DirEntry[str]") -> str:
    return entry.name


def search_file(path: str, below: str, regex: "re.Pattern[str]") -> Iterator[dict[str, object]]:
    """Yield the matching lines of one text file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return
            if b"\0" in file.peek(_BINARY_SAMPLE)[:_BINARY_SAMPLE]:
                return
            number, ended = 0, True
            while raw := file.readline(_LINE_BYTES):
                number += ended
                ended = raw.endswith(b"\n")
                line = raw.rstrip(b"\r\n").decode(errors="replace")
                found = regex.search(line)
                if found:
                    begin = max(found.start() - _TEXT_CHARS // 2, 0)
                    yield {
                        "path": below,
                        "line": number,
                        "text": line[begin : begin + _TEXT_CHARS],
                        "start": found.start() - begin,
                    }
    except OSError:
        return


def run(request: dict[str, str], write: Callable[[dict[str, object]], None]) -> None:
    """Do one search, writing each finding as soon as it is made."""
    glob = re.compile(translate(request["glob"]), re.DOTALL) if request.get("glob") else None
    root = request["root"]
    if request["mode"] == "files":
        names = re.compile(translate(request["pattern"]), re.DOTALL)
        for _, below in walk(root):
            if names.match(below) and (glob is None or glob.match(below)):
                write({"path": below})
        return
    regex = re.compile(request["pattern"])
    for path, below in walk(root):
        if glob is None or glob.match(below):
            for finding in search_file(path, below, regex):
                write(finding)


def main() -> None:
    """Read the request from the command line and answer on standard output."""

    def write(finding: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(finding) + "\n")
        sys.stdout.flush()

    try:
        run(json.loads(sys.argv[1]), write)
    except (re.error, OverflowError, RecursionError) as error:
        write({"error": f"The pattern is not a valid regular expression: {error}."})
    except BrokenPipeError:
        sys.stderr.close()


if __name__ == "__main__":
    main()
