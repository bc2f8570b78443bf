"""Conversations kept in memory: the shipped fake, and the store of a server that keeps nothing.

Nothing outlives the process, and search reads every message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from hermes.messages import Message, Usage
from hermes.sessions import codec, heads, search
from hermes.sessions.model import SearchHit, Session, StoredMessage


@dataclass(slots=True)
class _Conversation:
    """A head and its messages."""

    head: Session
    messages: list[StoredMessage] = field(default_factory=list[StoredMessage])


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one turn cost, and when."""

    session_id: str
    model: str
    usage: Usage
    created_at: float


class MemorySessionStore:
    """The ``SessionStore`` without a database; it keeps the same contract, from any thread.

    Messages come back as a database would give them: without lone surrogates.
    """

    def __init__(self) -> None:
        self._conversations: dict[str, _Conversation] = {}
        self._turns: list[_Turn] = []
        self._unfinished: dict[str, tuple[Message, ...]] = {}
        self._clock = heads.Clock()
        self._lock = Lock()

    async def create(self, session: Session) -> Session:
        """Store a new head; see the port."""
        head = heads.opened(session, self._clock())
        with self._lock:
            return self._add(_Conversation(head)).head

    async def get(self, session_id: str) -> Session | None:
        """Return the head, or None."""
        found = self._conversations.get(codec.clean(session_id))
        return found.head if found else None

    async def history(self, session_id: str) -> tuple[Message, ...]:
        """Return all messages in order."""
        return tuple(stored.message for stored in self._existing(session_id).messages)

    async def page(
        self, session_id: str, *, limit: int, offset: int = 0, newest_first: bool = False
    ) -> tuple[Sequence[StoredMessage], int]:
        """Return a part of the history, and how many messages there are in all."""
        found = self._existing(session_id).messages
        ordered = found[::-1] if newest_first else found
        start = max(0, offset)
        return tuple(ordered[start : start + max(0, limit)]), len(found)

    async def append_turn(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        usage: Usage,
        model: str = "",
    ) -> int:
        """Add one turn's messages at once; see the port."""
        kept = codec.decode_all(codec.encode_all(messages))
        now, model = self._clock(), codec.clean(model)
        with self._lock:
            found = self._existing(session_id)
            head = found.head
            found.messages += (
                StoredMessage(session_id=head.id, position=at, message=message, created_at=now)
                for at, message in enumerate(kept, len(found.messages))
            )
            found.head = replace(
                head,
                last_active=now,
                ended_at=None,
                end_reason="",
                model=model or head.model,
                preview=head.preview or heads.preview_of(kept),
                message_count=len(found.messages),
                tool_call_count=head.tool_call_count + heads.tool_calls_in(kept),
                usage=head.usage + usage,
            )
            self._turns.append(_Turn(head.id, model, usage, now))
            self._unfinished.pop(head.id, None)
            return len(found.messages)

    async def save_unfinished(self, session_id: str, messages: Sequence[Message]) -> None:
        """Keep what the session's running turn has so far; see the port."""
        kept = codec.decode_all(codec.encode_all(messages))
        with self._lock:
            self._unfinished[codec.clean(session_id)] = kept

    async def unfinished(self, session_id: str) -> tuple[Message, ...]:
        """Return what was kept of a turn that has not ended."""
        return self._unfinished.get(codec.clean(session_id), ())

    async def update(
        self, session_id: str, *, title: str | None = None, end_reason: str | None = None
    ) -> Session:
        """Change what is given; an ``end_reason`` also ends the session."""
        now = self._clock()
        with self._lock:
            found = self._existing(session_id)
            if title is not None:
                found.head = replace(found.head, title=codec.clean(title))
            if end_reason is not None:
                reason = codec.clean(end_reason)
                found.head = replace(found.head, end_reason=reason, ended_at=now)
            return found.head

    async def fork(self, session_id: str, *, new_id: str = "", title: str = "") -> Session:
        """Copy head and messages into a child session; see the port."""
        now = self._clock()
        with self._lock:
            source = self._existing(session_id)
            head = heads.forked(source.head, child_id=new_id, title=title, now=now)
            copies = [replace(stored, session_id=head.id) for stored in source.messages]
            return self._add(_Conversation(head, copies)).head

    async def delete(self, session_id: str) -> bool:
        """Remove head, messages and what is unfinished; return whether there was a head."""
        with self._lock:
            self._unfinished.pop(codec.clean(session_id), None)
            found = self._conversations.pop(codec.clean(session_id), None)
            if found:
                self._turns = [turn for turn in self._turns if turn.session_id != found.head.id]
            return found is not None

    async def list(
        self,
        *,
        limit: int = 50,
        offset: int = 0,
        source: str = "",
        include_children: bool = True,
    ) -> tuple[Sequence[Session], bool]:
        """Return heads by last activity, newest first, and whether more follow."""
        with self._lock:
            found = [conversation.head for conversation in self._conversations.values()]
        wanted = sorted(
            (
                head
                for head in found
                if (not source or head.source == codec.clean(source))
                and (include_children or not head.parent_id)
            ),
            key=lambda head: (head.last_active, head.id),
            reverse=True,
        )
        start = max(0, offset)
        end = start + max(0, limit)
        return tuple(wanted[start:end]), len(wanted) > end

    async def search(self, words: str, *, limit: int = 20) -> Sequence[SearchHit]:
        """Find messages that hold all of ``words``, newest first; any text is a valid query."""
        query = search.parse(words)
        if not query.terms or limit <= 0:
            return ()
        with self._lock:
            found = [stored for each in self._conversations.values() for stored in each.messages]
        found.sort(key=lambda stored: (stored.created_at, stored.position), reverse=True)
        hits: list[SearchHit] = []
        for stored in found:
            text = codec.searchable(stored.message)
            if query.matches(text):
                hits.append(_hit(stored, query.snippet(text)))
        return tuple(hits[:limit])

    async def usage_by_model(self, *, since: float = 0.0) -> Mapping[str, Usage]:
        """Return what turns written from ``since`` on cost, by model."""
        sums: dict[str, Usage] = {}
        for turn in tuple(self._turns):
            if turn.created_at >= since:
                sums[turn.model] = sums.get(turn.model, Usage()) + turn.usage
        return sums

    async def aclose(self) -> None:
        """Nothing to release."""

    def _existing(self, session_id: str) -> _Conversation:
        found = self._conversations.get(codec.clean(session_id))
        if found is None:
            raise heads.not_found()
        return found

    def _add(self, conversation: _Conversation) -> _Conversation:
        if conversation.head.id in self._conversations:
            raise heads.exists()
        self._conversations[conversation.head.id] = conversation
        return conversation


def _hit(stored: StoredMessage, snippet: str) -> SearchHit:
    return SearchHit(
        session_id=stored.session_id,
        position=stored.position,
        role=stored.message.role,
        snippet=snippet,
        created_at=stored.created_at,
    )
