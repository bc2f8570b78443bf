"""The conversation held at a terminal: its session, its turns, and the way to other sessions.

How a turn looks and what is typed is not known here.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hermes.agent.cancel import TurnControl
from hermes.agent.event_log import EventLog
from hermes.agent.runtime import AgentRuntime
from hermes.errors import SessionError
from hermes.events import TurnResult
from hermes.hermes_cli.terminal.view import View, follow
from hermes.ids import new_session_id
from hermes.messages import Usage
from hermes.run_agent import AIAgent
from hermes.sessions.model import Session

SOURCE = "cli"
_PREFIX_LENGTH = 4
_SEARCHED = 500
"""Sessions, newest first, among which the beginning of an id is looked for."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was asked last and what was answered."""

    question: str
    answer: str


class Conversation:
    """One session at a time; a new one is stored with its first turn."""

    def __init__(self, runtime: AgentRuntime, keywords: dict[str, Any]) -> None:
        self._runtime = runtime
        self._keywords = keywords
        self.session_id = new_session_id()
        self.turns = 0
        self.usage = Usage()
        self._log: EventLog | None = None
        self.model: str = keywords.get("model") or ""

    @property
    def provider(self) -> str:
        """The name of the provider that is asked first."""
        return str(self._keywords.get("provider") or "")

    @property
    def title(self) -> str:
        """The model and where it is, in words."""
        model = self.model or "the default model"
        return f"{model} ({self.provider})" if self.provider else model

    @property
    def status(self) -> str:
        """One line about the session and what it has cost so far."""
        used = f" · {self.usage.total:,} tokens" if self.usage.total else ""
        return f"{self.title} · {self.session_id[:12]}{used}"

    async def turn(self, text: str, view: View, control: TurnControl) -> TurnResult:
        """Run one turn and show it; ``control`` stops it.

        Raises:
            HermesError: the turn could not even begin, e.g. for a wrong setting.
            BrokenPipeError: the view's reader has gone; the turn was stopped and is stored.
        """
        log = self._log = EventLog()
        agent = AIAgent(
            **self._keywords,
            runtime=self._runtime,
            event_sink=log,
            control=control,
            stored=True,
            source=SOURCE,
            session_id=self.session_id,
        )
        running = asyncio.ensure_future(agent.run(text))
        running.add_done_callback(lambda _: log.close())
        try:
            await follow(log, view)
        finally:
            control.cancel()
            await asyncio.wait({running})
        result = running.result()
        self.turns += 1
        self.usage += result.usage
        self.model = result.model or self.model
        return result

    def nudge(self) -> None:
        """Let the view of the running turn draw again."""
        if self._log is not None:
            self._log.nudge()

    def new(self) -> None:
        """Go on in a new session."""
        self._enter(new_session_id())

    def _enter(self, session_id: str) -> None:
        self.session_id = session_id
        self.turns = 0
        self.usage = Usage()

    async def recent(self, limit: int) -> Sequence[Session]:
        """Return the sessions of the terminal, the one used last first."""
        sessions, _ = await self._runtime.store.list(limit=limit, source=SOURCE)
        return sessions

    async def resume(self, wanted: str) -> Session:
        """Go on in the session ``wanted``: an id, its beginning, or ``last``.

        Raises:
            SessionError: there is none, or more than one (``session_ambiguous``).
        """
        session = await self._find(wanted)
        self._enter(session.id)
        return session

    async def _find(self, wanted: str) -> Session:
        store = self._runtime.store
        if wanted == "last":
            sessions = await self.recent(1)
            if not sessions:
                raise SessionError("There is no session yet.", code="session_not_found")
            return sessions[0]
        if (exact := await store.get(wanted)) is not None:
            return exact
        found: list[Session] = []
        if len(wanted.removeprefix("ses_")) >= _PREFIX_LENGTH:
            sessions, _ = await store.list(limit=_SEARCHED)
            found = [
                session for session in sessions if session.id.startswith((wanted, f"ses_{wanted}"))
            ]
        if len(found) == 1:
            return found[0]
        if found:
            raise SessionError(
                f"{len(found)} sessions begin with {wanted!r}; give more of the id.",
                code="session_ambiguous",
            )
        raise SessionError(f"There is no session {wanted!r}.", code="session_not_found")

    async def last_exchange(self) -> Exchange | None:
        """Return the session's last question and its answer, None where nothing was asked yet."""
        page, _ = await self._runtime.store.page(self.session_id, limit=200, newest_first=True)
        answer: list[str] = []
        for stored in sorted(page, key=lambda message: -message.position):
            message = stored.message
            if message.role == "user":
                return Exchange(message.text, "\n\n".join(reversed(answer)))
            if message.role == "assistant" and message.text.strip():
                answer.append(message.text)
        return None
