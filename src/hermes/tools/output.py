"""What a command wrote: bounded in memory, made readable for a model.

Nothing is kept on disk here and no process is known.
"""

import re

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
)
_OVERSTRIKE = re.compile(r"[^\n]\x08")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ZERO_SHARE = 0.05
_STRANGE_SHARE = 0.3
_STRANGE_COUNT = 16


class Ends:
    """The first and the last bytes of a stream of any length, in bounded memory."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data[-self._tail_bytes :]
            if len(self._tail) > 2 * self._tail_bytes:
                del self._tail[: -self._tail_bytes]

    def has_room(self, size: int) -> bool:
        """Whether so many more bytes can be taken without dropping any."""
        return self.total + size <= self._head_bytes + self._tail_bytes

    @property
    def overflowed(self) -> bool:
        """Whether bytes between head and tail were dropped."""
        return not self.has_room(0)

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes; with ``head`` the whole when nothing was dropped."""
        return bytes(self._tail[-self._tail_bytes :])


def is_binary(data: bytes) -> bool:
    """Whether the first 8 KB hold so much NUL, or so much that is not UTF-8, that it is no text."""
    sample = data[:8192]
    if not sample:
        return False
    if sample.count(0) > len(sample) * _ZERO_SHARE:
        return True
    text = sample.decode(errors="replace")
    return text.count("\ufffd") > max(len(text) * _STRANGE_SHARE, _STRANGE_COUNT)


def decode(data: bytes) -> str:
    """Return bytes as text, with U+FFFD for what is not UTF-8."""
    return data.decode(errors="replace")


def readable(text: str) -> str:
    """Return terminal output as it would look when done.

    Colours and cursor movements go, a line that was written over with carriage returns keeps its
    last state, overstrikes collapse, other control characters go.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.replace("\r\n", "\n").split("\n"))
    if "\x08" in text:
        text = _OVERSTRIKE.sub("", text)
    return _CONTROL.sub("", text)


def _last_state(line: str) -> str:
    if "\r" not in line:
        return line
    return next((state for state in reversed(line.split("\r")) if state.strip()), "")
