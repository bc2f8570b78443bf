"""Conversations in SQLite or PostgreSQL, for an event loop that must not wait.

Importing this module loads SQLAlchemy (0.3 s); ``opening.open_store`` does so off the loop. Which
session may be written next is ``turns.SessionLocks``' concern.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from hermes.messages import Message, Usage
from hermes.sessions import codec, database, heads, records, search, unfinished, upgrade
from hermes.sessions.model import SearchHit, Session, StoredMessage
from hermes.sessions.workers import T, Workers

_READERS = 3
_POSTGRES_WRITERS = 4
_SQLITE_GROUP = 64


class SqlSessionStore:
    """The ``SessionStore`` over a database; over what ``open_workers`` opened, ended by ``aclose``.

    Work runs on a few threads of its own. A cancelled caller's write is finished if it had begun
    and dropped if it had not: a turn is stored whole or not at all.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._clock = heads.Clock()

    @classmethod
    async def open(cls, url_or_path: str | Path) -> "SqlSessionStore":
        """Open a database off the event loop; raises as ``open_workers`` does."""
        opening = asyncio.ensure_future(asyncio.to_thread(open_workers, url_or_path))
        try:
            return cls(await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise

    async def create(self, session: Session) -> Session:
        """Store a new head; see the port."""
        head = heads.opened(session, self._clock())
        return await _done(self._workers.write(partial(records.create, session=head)))

    async def get(self, session_id: str) -> Session | None:
        """Return the head, or None."""
        job = partial(records.get, session_id=codec.clean(session_id))
        return await _done(self._workers.read(job))

    async def history(self, session_id: str) -> tuple[Message, ...]:
        """Return all messages in order."""
        job = partial(records.history, session_id=codec.clean(session_id))
        return await _done(self._workers.read(job))

    async def page(
        self, session_id: str, *, limit: int, offset: int = 0, newest_first: bool = False
    ) -> tuple[Sequence[StoredMessage], int]:
        """Return a part of the history, and how many messages there are in all."""
        job = partial(
            records.page,
            session_id=codec.clean(session_id),
            limit=_bounded(limit),
            offset=_bounded(offset),
            newest_first=newest_first,
        )
        return await _done(self._workers.read(job))

    async def append_turn(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        usage: Usage,
        model: str = "",
    ) -> int:
        """Add one turn's messages in one transaction; see the port."""
        job = partial(
            records.append_turn,
            session_id=codec.clean(session_id),
            added=tuple(messages),
            usage=usage,
            model=codec.clean(model),
            now=self._clock(),
        )
        return await _done(self._workers.write(job))

    async def save_unfinished(self, session_id: str, messages: Sequence[Message]) -> None:
        """Keep what the session's running turn has so far; see the port."""
        job = partial(
            unfinished.save,
            session_id=codec.clean(session_id),
            said=tuple(messages),
            now=self._clock(),
        )
        await _done(self._workers.write(job))

    async def unfinished(self, session_id: str) -> tuple[Message, ...]:
        """Return what was kept of a turn that has not ended."""
        job = partial(unfinished.read, session_id=codec.clean(session_id))
        return await _done(self._workers.read(job))

    async def update(
        self, session_id: str, *, title: str | None = None, end_reason: str | None = None
    ) -> Session:
        """Change what is given; an ``end_reason`` also ends the session."""
        job = partial(
            records.change,
            session_id=codec.clean(session_id),
            title=None if title is None else codec.clean(title),
            end_reason=None if end_reason is None else codec.clean(end_reason),
            now=self._clock(),
        )
        return await _done(self._workers.write(job))

    async def fork(self, session_id: str, *, new_id: str = "", title: str = "") -> Session:
        """Copy head and messages into a child session; see the port."""
        job = partial(
            records.fork,
            session_id=codec.clean(session_id),
            child_id=new_id,
            title=title,
            now=self._clock(),
        )
        return await _done(self._workers.write(job))

    async def delete(self, session_id: str) -> bool:
        """Remove head, messages and what is unfinished; return whether there was a head."""
        job = partial(records.remove, session_id=codec.clean(session_id))
        return await _done(self._workers.write(job))

    async def list(
        self,
        *,
        limit: int = 50,
        offset: int = 0,
        source: str = "",
        include_children: bool = True,
    ) -> tuple[Sequence[Session], bool]:
        """Return heads by last activity, newest first, and whether more follow."""
        job = partial(
            records.listing,
            limit=_bounded(limit),
            offset=_bounded(offset),
            source=codec.clean(source),
            include_children=include_children,
        )
        return await _done(self._workers.read(job))

    async def search(self, words: str, *, limit: int = 20) -> Sequence[SearchHit]:
        """Find messages that hold all of ``words``; any text is a valid query."""
        query = search.parse(words)
        if not query.terms or limit <= 0:
            return ()
        job = partial(records.find, query=query, limit=_bounded(limit))
        return await _done(self._workers.read(job))

    async def usage_by_model(self, *, since: float = 0.0) -> Mapping[str, Usage]:
        """Return what turns written from ``since`` on cost, by model."""
        job = partial(records.usage_by_model, since=since)
        return await _done(self._workers.read(job))

    async def aclose(self) -> None:
        """Finish what was begun, close connections and threads; idempotent."""
        await asyncio.shield(asyncio.to_thread(self._workers.close))


def open_workers(url_or_path: str | Path) -> Workers:
    """Open a database, making or migrating its tables; blocks for some 20 ms.

    ``url_or_path`` is a SQLite file, ``sqlite:///FILE`` or ``postgresql://HOST/NAME``.

    Raises:
        ConfigError: no such kind of database, or its driver is missing.
        SessionError: ``session_store_foreign`` (another program's, left untouched),
            ``session_store_newer`` (a later Hermes made it), ``session_store_unavailable``.

    """
    engine = database.create(url_or_path, connections=_READERS + _POSTGRES_WRITERS)
    try:
        upgrade.prepare(engine)
    except BaseException:
        engine.dispose()
        raise
    if engine.dialect.name == "sqlite":
        return Workers(engine, writers=1, readers=_READERS, group=_SQLITE_GROUP)
    # A group would hold rows of several sessions, and two processes' groups could block each
    # other; PostgreSQL itself joins the commits of parallel transactions.
    return Workers(engine, writers=_POSTGRES_WRITERS, readers=_READERS, group=1)


def _bounded(count: int) -> int:
    return max(0, min(count, 2**31))


async def _done(future: Future[T]) -> T:
    return await asyncio.wrap_future(future)


def _close_unwanted(opening: asyncio.Future[Workers]) -> None:
    """Close what a cancelled caller opened; it has no thread yet, so nothing waits."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
