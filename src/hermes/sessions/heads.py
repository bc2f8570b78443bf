"""The rules for a session's head that every store keeps: how it opens, what a child takes over.

Where heads are stored is for the stores to know.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from hermes.errors import SessionError
from hermes.ids import new_session_id
from hermes.messages import Message, Usage
from hermes.sessions.codec import clean
from hermes.sessions.model import Session

PREVIEW_CHARACTERS = 80


class Clock:
    """Unix seconds that never repeat, so that order by time is the order of writing."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._last = 0.0
        self._lock = Lock()

    def __call__(self) -> float:
        """Return a time later than the one before."""
        with self._lock:
            self._last = max(self._now(), self._last + 1e-6)
            return self._last


def opened(session: Session, now: float) -> Session:
    """Return the head to store for a new session: id and times set, nothing counted yet."""
    started = session.started_at or now
    return replace(
        session,
        id=clean(session.id) or new_session_id(),
        source=clean(session.source),
        title=clean(session.title),
        preview="",
        model=clean(session.model),
        system_prompt=clean(session.system_prompt),
        parent_id=clean(session.parent_id),
        user_id=clean(session.user_id),
        started_at=started,
        last_active=session.last_active or started,
        end_reason=clean(session.end_reason),
        message_count=0,
        tool_call_count=0,
        usage=Usage(),
    )


def forked(source: Session, *, child_id: str, title: str, now: float) -> Session:
    """Return the head of a copy of ``source``: its child, active now, not ended, no usage yet."""
    return replace(
        source,
        id=clean(child_id) or new_session_id(),
        parent_id=source.id,
        title=clean(title) or source.title,
        started_at=now,
        last_active=now,
        ended_at=None,
        end_reason="",
        usage=Usage(),
    )


def preview_of(messages: Sequence[Message]) -> str:
    """Return the start of the first thing the user said, on one line."""
    heard = next((message.text for message in messages if message.role == "user"), "")
    line = " ".join(clean(heard[: 8 * PREVIEW_CHARACTERS]).split())
    return line if len(line) <= PREVIEW_CHARACTERS else line[: PREVIEW_CHARACTERS - 1] + "…"


def tool_calls_in(messages: Sequence[Message]) -> int:
    """Return how many tool calls the messages hold."""
    return sum(len(message.tool_calls) for message in messages)


def not_found() -> SessionError:
    """Return the error for an id that no session has."""
    return SessionError("There is no session of this id.", code="session_not_found")


def exists() -> SessionError:
    """Return the error for an id that is taken."""
    return SessionError("There is a session of this id already.", code="session_exists")
