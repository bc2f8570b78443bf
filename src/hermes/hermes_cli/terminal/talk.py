"""The loop of a conversation at a terminal: ask, answer, until the user leaves.

How things look is the view's, what is stored the conversation's.
"""

import asyncio
import signal
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from hermes.agent.cancel import TurnControl
from hermes.errors import HermesError
from hermes.hermes_cli.terminal import slash, wording
from hermes.hermes_cli.terminal.clean import one_line
from hermes.hermes_cli.terminal.conversation import Conversation
from hermes.hermes_cli.terminal.input import Input, Interrupted
from hermes.hermes_cli.terminal.keys import Keys
from hermes.hermes_cli.terminal.view import TalkView, TypingView

LEAVE_HINT = "Ctrl-D or /quit leaves."


class Talk:
    """One user's conversation.

    Where the view can show it (``typing``), what is typed while a turn runs is read from the
    descriptor ``keyboard``; else the terminal keeps it for the next prompt.
    """

    def __init__(
        self,
        conversation: Conversation,
        view: TalkView,
        prompt: Input,
        *,
        typing: TypingView | None = None,
        keyboard: int = 0,
    ) -> None:
        self._conversation = conversation
        self._view = view
        self._prompt = prompt
        self._typing = typing
        self._keyboard = keyboard

    async def run(self) -> None:
        """Ask and answer until the user leaves."""
        unsent = ""
        while True:
            try:
                text = await self._prompt.read(unsent)
            except Interrupted:
                text = ""
                await self._view.notice(LEAVE_HINT)
            except EOFError:
                return
            unsent = ""
            if not text:
                continue
            outcome = await self._command(text) if text.startswith("/") else None
            if outcome is None:
                unsent = await self._turn(text)
            elif outcome.leave:
                return

    async def show_session(self) -> None:
        """Say which session goes on, and what was said in it last."""
        exchange = await self._conversation.last_exchange()
        await self._view.notice(f"Session {self._conversation.session_id} goes on.")
        if exchange is not None:
            await self._view.notice(f"> {one_line(exchange.question, 500)}")
            await self._view.markdown(exchange.answer or "(no answer)")

    async def _command(self, line: str) -> slash.Outcome | None:
        try:
            outcome = await slash.run(line, self._conversation)
            if outcome is not None and outcome.entered:
                await self.show_session()
        except HermesError as error:
            outcome = slash.Outcome(text=f"Error: {wording.error(error)}")
        if outcome is not None:
            await self._view.notice(outcome.text)
        return outcome

    async def _turn(self, text: str) -> str:
        """Run one turn; return what the user typed meanwhile that the turn did not take."""
        control = TurnControl()
        keys = self._keys(control)
        pending = ""
        try:
            with self._interrupts(control), self._reading(keys):
                result = await self._conversation.turn(text, self._view, control)
            pending = result.pending_steer
        except HermesError as error:
            await self._view.notice(f"Error: {wording.error(error)}")
        finally:
            await self._view.close()
        return "\n".join(part for part in (pending, keys.text.strip()) if part)

    def _keys(self, control: TurnControl) -> Keys:
        def changed(text: str) -> None:
            if self._typing is not None:
                self._typing.typed = text
                self._conversation.nudge()

        def entered(line: str) -> None:
            control.steer(line)
            if self._typing is not None:
                self._typing.waiting.append(line)

        return Keys(changed, entered)

    def _reading(self, keys: Keys) -> AbstractContextManager[None]:
        return nullcontext() if self._typing is None else keys.reading(self._keyboard)

    @contextmanager
    def _interrupts(self, control: TurnControl) -> Generator[None]:
        """Let Ctrl-C stop the turn; pressed three times it ends the program."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        presses = 0

        def pressed() -> None:
            nonlocal presses
            presses += 1
            control.cancel()
            if presses > 2 and task is not None:
                task.cancel()

        loop.add_signal_handler(signal.SIGINT, pressed)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
