"""The few rules of a terminal that the program relies on."""

import re

from rich.cells import cell_len

_TOKEN = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|(\n|\r)|([^\x1b\n\r]+)")


class Emulator:
    """Rows of text, all of them: those that scrolled away are kept and cannot be reached."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows = [""]
        self.row = 0
        self.column = 0

    def write(self, text: str) -> None:
        for argument, command, control, words in _TOKEN.findall(text):
            if command:
                self._command(argument, command)
            elif control == "\r":
                self.column = 0
            elif control == "\n":
                self._line_feed()
            else:
                self._words(words)

    def _command(self, argument: str, command: str) -> None:
        count = int(argument or "1") if argument.isdecimal() or not argument else 1
        if command == "A":
            assert self.row - count >= max(0, len(self.rows) - self.height), "beyond the window"
            self.row -= count
        elif command == "B":
            self.row = min(self.row + count, len(self.rows) - 1)
        elif command == "K":
            assert argument == "2"
            self.rows[self.row] = ""
        else:
            assert command in "mhl", f"unknown command {command}"

    def _line_feed(self) -> None:
        self.column = 0
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")

    def _words(self, words: str) -> None:
        for letter in words:
            size = cell_len(letter)
            if self.column + size > self.width:
                self._line_feed()
            assert cell_len(self.rows[self.row]) == self.column, "written over"
            self.rows[self.row] += letter
            self.column += size
