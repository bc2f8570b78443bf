"""A real terminal to run the program in: a tmux server of the test's own."""

import asyncio
import itertools
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

AVAILABLE = shutil.which("tmux") is not None

LIMIT = 20.0
"""Seconds that a screen may take to show what is expected; starting a program is part of it."""

_numbers = itertools.count()
_SOURCE = Path(__file__).parents[2] / "src"


async def _output(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, f"{command}: {err.decode()}"
    return out.decode()


class Terminal:
    """One window of tmux."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ("tmux", "-S", str(socket), "-f", "/dev/null")

    async def start(
        self, command: str, environment: Mapping[str, str], *, width: int, height: int
    ) -> None:
        size = ("-x", str(width), "-y", str(height))
        settings = [part for pair in environment.items() for part in ("-e", "=".join(pair))]
        # The shell stays, so that what the program leaves on the screen can be read.
        shell = f"trap : INT; {command}; echo [exit $?]; exec sleep 600"
        await _output(*self._tmux, "new-session", "-d", *size, *settings, shell)

    async def stop(self) -> None:
        await _output(*self._tmux, "kill-server")

    async def type(self, text: str) -> None:
        """Type characters."""
        await _output(*self._tmux, "send-keys", "-l", text)

    async def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        await _output(*self._tmux, "send-keys", *keys)

    async def enter(self, text: str) -> None:
        """Type a line and press Enter."""
        await self.type(text)
        await self.press("Enter")

    async def paste(self, text: str) -> None:
        """Paste as a terminal does, in brackets where the program asked for them."""
        await _output(*self._tmux, "set-buffer", text)
        await _output(*self._tmux, "paste-buffer", "-p", "-r")

    async def resize(self, width: int, height: int) -> None:
        await _output(*self._tmux, "resize-window", "-x", str(width), "-y", str(height))

    async def screen(self, *, all_rows: bool = False, styles: bool = False) -> str:
        """What stands on the screen, with ``all_rows`` also what has scrolled away."""
        options = [*(("-S", "-") if all_rows else ()), *(("-e",) if styles else ())]
        return await _output(*self._tmux, "capture-pane", "-p", *options)

    async def until(self, shown: str | Callable[[str], bool]) -> str:
        """Wait until the screen shows a text, or until a condition holds for it; return it."""
        condition = (lambda screen: shown in screen) if isinstance(shown, str) else shown
        screen = ""
        try:
            async with asyncio.timeout(LIMIT):
                while not condition(screen := await self.screen()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"not shown: {shown!r}\n{screen}") from None
        return screen


@asynccontextmanager
async def hermes(
    folder: Path,
    home: Path,
    arguments: str,
    *,
    width: int = 80,
    height: int = 30,
    **environment: str,
) -> AsyncIterator[Terminal]:
    """Run ``hermes`` with these arguments in a terminal of its own."""
    terminal = Terminal(folder / f"tmux-{next(_numbers)}")
    variables = {"HERMES_HOME": str(home), "PYTHONPATH": str(_SOURCE), **environment}
    command = f"{sys.executable} -m hermes {arguments}"
    if "TERM" in environment:
        command = f"TERM={environment['TERM']} {command}"
    await terminal.start(command, variables, width=width, height=height)
    try:
        yield terminal
    finally:
        await terminal.stop()
