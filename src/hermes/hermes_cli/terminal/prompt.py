"""An editor for the next message, with history, search and several lines.

What a message means is for the conversation to say.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Always, has_focus
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

from hermes.hermes_cli.terminal.input import Interrupted

_STYLE = Style.from_dict(
    {
        "bottom-toolbar": "noreverse fg:ansibrightblack bg:default",
        "prompt": "bold",
    }
)


class Editor:
    """The prompt: Enter sends, Alt-Enter or a backslash before Enter starts a new line.

    ``history`` is a file only the user can read; ``status`` gives the line below; ``commands``
    are offered where a message begins with a slash.
    """

    def __init__(
        self, history: Path, *, status: Callable[[], str], commands: Iterable[str]
    ) -> None:
        _make_private(history)
        self._session: PromptSession[str] = PromptSession(
            message=[("class:prompt", "> ")],
            multiline=True,
            prompt_continuation="  ",
            history=FileHistory(str(history)),
            completer=_Slash(tuple(commands)),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            bottom_toolbar=status,
            key_bindings=_bindings(),
            style=_STYLE,
            interrupt_exception=Interrupted,
        )
        for window in self._session.layout.find_all_windows():
            if getattr(window.content, "buffer", None) is self._session.default_buffer:
                # Without this the status line stands at the far end of an empty window.
                window.dont_extend_height = Always()

    async def read(self, default: str = "") -> str:
        """Return the next message, without the space around it."""
        return (await self._session.prompt_async(default=default)).strip()


def _make_private(path: Path) -> None:
    """Make sure that the file is there and that nobody else can read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


class _Slash(Completer):
    """Completes the name of a command at the very beginning."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        typed = document.text
        if typed.startswith("/") and " " not in typed:
            for name in self._names:
                if name.startswith(typed):
                    yield Completion(name, start_position=-len(typed))


def _bindings() -> KeyBindings:
    bindings = KeyBindings()
    editing = has_focus(DEFAULT_BUFFER)

    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif buffer.text.strip():
            buffer.validate_and_handle()

    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=Interrupted(), style="class:aborting")

    bindings.add("enter", filter=editing)(enter)
    bindings.add("escape", "enter", filter=editing)(new_line)
    bindings.add("c-c", filter=editing)(interrupt)
    return bindings
