"""Bytes to a file descriptor from an event loop: in order, at once, and without blocking the loop.

What the bytes mean is not known here.
"""

import asyncio
import os
import select

_PIECE = 4096
"""A descriptor that is ready takes this many bytes without blocking (PIPE_BUF)."""

_PATIENCE = 0.2
"""Seconds that one wait for a slow reader holds a thread."""


class Output:
    """One descriptor. ``column_zero`` says that the last byte written was a newline."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self.column_zero = True

    def window(self) -> tuple[int, int]:
        """Return columns and rows of the terminal as they are, whatever COLUMNS says."""
        try:
            columns, rows = os.get_terminal_size(self.fd)
        except OSError:
            return (80, 24)
        return (columns or 80, rows or 24)

    async def write(self, text: str) -> None:
        """Write all of ``text``.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        if not text:
            return
        data = memoryview(text.encode("utf-8", "replace"))
        self.column_zero = text.endswith("\n")
        while data:
            while not self._ready(0):
                await asyncio.to_thread(self._ready, _PATIENCE)
            data = data[os.write(self.fd, data[:_PIECE]) :]

    def _ready(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self.fd, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))
