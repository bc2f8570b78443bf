"""The port to where the user types the next message, and the one that needs no special terminal.

What a message means is for the conversation to say.
"""

import asyncio
import codecs
import os
import signal
from typing import Protocol

from hermes.hermes_cli.terminal.output import Output


class Interrupted(Exception):  # noqa: N818 - Ctrl-C is no error
    """Ctrl-C at an empty line."""


class Input(Protocol):
    """Asks for one message after another."""

    async def read(self, default: str = "") -> str:
        """Return the next message; ``default`` is offered to be sent or changed.

        Raises:
            EOFError: the user leaves.
            Interrupted: Ctrl-C with nothing typed.
        """
        ...


class LineInput:
    """Whole lines as the terminal itself edits them: works on every terminal, draws nothing.

    A backslash at the end of a line says that the message goes on in the next.
    """

    def __init__(self, fd: int, output: Output) -> None:
        self._fd = fd
        self._output = output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    async def read(self, default: str = "") -> str:
        """Return the next message; an empty line sends ``default``."""
        if default:
            await self._output.write(f"Not sent yet (Enter sends it): {default}\n")
        lines: list[str] = []
        while True:
            await self._output.write("... " if lines else "> ")
            line = await self._line()
            self._output.column_zero = True
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines).strip() or default

    async def _line(self) -> str:
        while "\n" not in self._rest:
            data = await self._data()
            if not data:
                if self._rest:
                    break
                raise EOFError
            self._rest += self._decode.decode(data)
        line, _, self._rest = self._rest.partition("\n")
        return line

    async def _data(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[bool] = loop.create_future()

        def settle(interrupted: bool) -> None:
            if not ready.done():
                ready.set_result(interrupted)

        loop.add_reader(self._fd, settle, False)  # noqa: FBT003 - a callback's argument
        loop.add_signal_handler(signal.SIGINT, settle, True)  # noqa: FBT003
        try:
            interrupted = await ready
        finally:
            loop.remove_reader(self._fd)
            loop.remove_signal_handler(signal.SIGINT)
        if interrupted:
            self._rest = ""
            raise Interrupted
        return os.read(self._fd, 65_536)
