"""What is typed while a turn runs, gathered into lines without an echo of the terminal's own.

Editing is backspace and clear-line only; the prompt between turns has the rest.
"""

import asyncio
import codecs
import os
import re
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager

_SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
_ERASE = ("\x7f", "\b")
_CLEAR = ("\x15", "\x17")


class Keys:
    """The line being typed; ``on_change`` and ``on_line`` are called in the loop's thread."""

    def __init__(self, on_change: Callable[[str], None], on_line: Callable[[str], None]) -> None:
        self.text = ""
        self._on_change = on_change
        self._on_line = on_line
        self._decode = codecs.getincrementaldecoder("utf-8")("ignore")

    @contextmanager
    def reading(self, fd: int) -> Generator[None]:
        """Read from terminal ``fd`` until the block is left; Ctrl-C stays a signal."""
        before = termios.tcgetattr(fd)
        mode = termios.tcgetattr(fd)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN] = 1
        mode[6][termios.VTIME] = 0
        termios.tcsetattr(fd, termios.TCSANOW, mode)
        loop = asyncio.get_running_loop()
        loop.add_reader(fd, self._read, fd)
        try:
            yield
        finally:
            loop.remove_reader(fd)
            termios.tcsetattr(fd, termios.TCSANOW, before)

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, 4096)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(fd)
            return
        self.type(self._decode.decode(data))

    def type(self, text: str) -> None:
        """Take keys; several lines in one piece are a paste and stay together."""
        text = _SEQUENCE.sub("", text).replace("\r", "\n")
        entered = text.endswith("\n")
        for key in text[:-1] if entered else text:
            if key in _ERASE:
                self.text = self.text[:-1]
            elif key in _CLEAR:
                self.text = ""
            elif key.isprintable() or key in "\n\t":
                self.text += key
        if entered:
            line, self.text = self.text.strip(), ""
            if line:
                self._on_line(line)
        self._on_change(self.text)
