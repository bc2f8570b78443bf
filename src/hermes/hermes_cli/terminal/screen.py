"""The last rows of a terminal as a region that can still change; what is above is final.

Only strings are made here; who writes them is not known. Rows that have scrolled away are never
touched: the region is kept lower than the window.
"""

import re
from collections.abc import Sequence

from rich.cells import cell_len

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_BEGIN = "\x1b[?2026h"
_END = "\x1b[?2026l"
"""Synchronized update: a terminal that knows it shows the frame at once, others ignore it."""

_ERASE = "\x1b[2K\x1b[1B"
"""Empty this row and go to the next."""

SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"


class Screen:
    """Knows which changeable rows the terminal shows; the cursor rests on the row below them."""

    def __init__(self) -> None:
        self._live: list[str] = []
        self._width = 0

    def frame(self, final: Sequence[str], live: Sequence[str], *, width: int, height: int) -> str:
        """Return what to write so that ``final`` stands for good and ``live`` below it.

        Rows that are right already are not written again. A row of ``live`` is no wider than
        ``width``; of many rows the last are shown.
        """
        shown = list(live)[-max(1, height - 2) :]
        wanted = [*final, *shown]
        kept = 0
        if width == self._width:
            while kept < len(self._live) and self._live[kept : kept + 1] == wanted[kept : kept + 1]:
                kept += 1
        above = self._rows(self._live[kept:], width)
        written = wanted[kept:]
        self._live = shown
        self._width = width
        if not above and not written:
            return ""
        rows = min(above, height - 1)
        # Row by row: tmux takes "erase below" at the window's top for a whole screen to keep.
        erase = f"\x1b[{rows}A\r" + _ERASE * rows + f"\x1b[{rows}A" if rows else ""
        return _BEGIN + erase + "".join(line + "\n" for line in written) + _END

    def _rows(self, lines: Sequence[str], width: int) -> int:
        if width >= self._width:
            return len(lines)
        # A window made narrower has wrapped what stood there.
        return sum(max(1, -(-cell_len(_ESCAPE.sub("", line)) // width)) for line in lines)
