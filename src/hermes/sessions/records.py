"""Reading and writing session rows over an open SQL connection.

Transactions, threads and connections are the caller's; nothing here commits.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Double,
    Row,
    Select,
    Text,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from hermes.messages import Message, Usage
from hermes.sessions import codec, heads, search, unfinished
from hermes.sessions.model import SearchHit, Session, StoredMessage
from hermes.sessions.schema import messages, sessions, turns

_USAGE_COLUMNS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")

_GET = select(sessions).where(sessions.c.id == bindparam("id"))
_LOCK = _GET.with_for_update()
_CREATE = insert(sessions)
_APPEND = (
    update(sessions)
    .where(sessions.c.id == bindparam("session"))
    .values(
        last_active=bindparam("now"),
        ended_at=None,
        end_reason="",
        model=case(
            (bindparam("turn_model", type_=Text) != "", bindparam("turn_model", type_=Text)),
            else_=sessions.c.model,
        ),
        preview=case(
            (sessions.c.preview == "", bindparam("heard", type_=Text)), else_=sessions.c.preview
        ),
        message_count=sessions.c.message_count + bindparam("added"),
        tool_call_count=sessions.c.tool_call_count + bindparam("calls"),
        **{name: sessions.c[name] + bindparam(f"more_{name}") for name in _USAGE_COLUMNS},
    )
    .returning(sessions.c.message_count)
)
_ADD_MESSAGE = insert(messages)
_ADD_TURN = insert(turns)
_BODIES = (
    select(messages.c.body)
    .where(messages.c.session_id == bindparam("id"))
    .order_by(messages.c.position)
)
_UPDATE = (
    update(sessions)
    .where(sessions.c.id == bindparam("session"))
    .values(
        title=func.coalesce(bindparam("new_title", type_=Text), sessions.c.title),
        end_reason=func.coalesce(bindparam("reason", type_=Text), sessions.c.end_reason),
        ended_at=func.coalesce(bindparam("ended", type_=Double), sessions.c.ended_at),
    )
)
_DELETE = delete(sessions).where(sessions.c.id == bindparam("session"))
_FIND = {
    "sqlite": text(
        "SELECT m.session_id, m.position, m.role, m.text, m.created_at FROM messages_fts f "
        "JOIN messages m ON m.id = f.rowid WHERE messages_fts MATCH :words "
        "ORDER BY f.rank, m.id DESC LIMIT :limit"
    ),
    "postgresql": text(
        "SELECT session_id, position, role, text, created_at FROM messages, "
        "to_tsquery('simple', :words) AS words WHERE search @@ words "
        "ORDER BY ts_rank(search, words) DESC, id DESC LIMIT :limit"
    ),
}


def create(connection: Connection, session: Session) -> Session:
    """Insert the head as it stands; ``session_exists`` for a taken id."""
    try:
        connection.execute(_CREATE, _head_row(session))
    except IntegrityError as error:
        raise heads.exists() from error
    return session


def get(connection: Connection, session_id: str) -> Session | None:
    """Return the head, or None."""
    row = connection.execute(_GET, {"id": session_id}).one_or_none()
    return _head(row) if row else None


def history(connection: Connection, session_id: str) -> tuple[Message, ...]:
    """Return all messages in order."""
    bodies = connection.execute(_BODIES, {"id": session_id}).scalars().all()
    if not bodies:
        _existing(connection, session_id)
    return tuple(map(codec.decode, bodies))


def page(
    connection: Connection,
    session_id: str,
    limit: int,
    offset: int,
    newest_first: bool,
) -> tuple[tuple[StoredMessage, ...], int]:
    """Return a part of the history, and how many messages there are."""
    head = _existing(connection, session_id)
    order = messages.c.position.desc() if newest_first else messages.c.position
    statement = (
        select(messages.c.position, messages.c.body, messages.c.created_at)
        .where(messages.c.session_id == session_id)
        .order_by(order)
        .limit(limit)
        .offset(offset)
    )
    found = tuple(
        StoredMessage(
            session_id=session_id,
            position=row.position,
            message=codec.decode(row.body),
            created_at=row.created_at,
        )
        for row in connection.execute(statement)
    )
    return found, head.message_count


def append_turn(
    connection: Connection,
    session_id: str,
    added: Sequence[Message],
    *,
    usage: Usage,
    model: str,
    now: float,
) -> int:
    """Add a turn's rows, in place of what was kept of it, and let the head grow; return its count.

    The head's row is changed first, so that positions are taken one writer after the other.
    """
    spent = _usage_row(usage)
    count = connection.execute(
        _APPEND,
        {
            "session": session_id,
            "now": now,
            "turn_model": model,
            "heard": heads.preview_of(added),
            "added": len(added),
            "calls": heads.tool_calls_in(added),
            **{f"more_{name}": tokens for name, tokens in spent.items()},
        },
    ).scalar_one_or_none()
    if count is None:
        raise heads.not_found()
    first = count - len(added)
    if added:
        rows = [_message_row(session_id, first + at, item, now) for at, item in enumerate(added)]
        connection.execute(_ADD_MESSAGE, rows)
    turn = {"session_id": session_id, "position": first, "model": model, "created_at": now}
    connection.execute(_ADD_TURN, turn | spent)
    unfinished.clear(connection, session_id)
    return count


def change(
    connection: Connection, session_id: str, title: str | None, end_reason: str | None, now: float
) -> Session:
    """Set what is given; an ``end_reason`` sets the end to ``now``."""
    ended = None if end_reason is None else now
    connection.execute(
        _UPDATE,
        {"session": session_id, "new_title": title, "reason": end_reason, "ended": ended},
    )
    return _existing(connection, session_id)


def fork(connection: Connection, session_id: str, child_id: str, title: str, now: float) -> Session:
    """Copy the head and all messages; the source is locked, so both are of one moment."""
    row = connection.execute(_LOCK, {"id": session_id}).one_or_none()
    if row is None:
        raise heads.not_found()
    child = heads.forked(_head(row), child_id=child_id, title=title, now=now)
    create(connection, child)
    kept = ("position", "role", "body", "text", "created_at")
    copied = (
        select(literal(child.id), *(messages.c[name] for name in kept))
        .where(messages.c.session_id == session_id)
        .order_by(messages.c.position)
    )
    connection.execute(insert(messages).from_select(["session_id", *kept], copied))
    return child


def remove(connection: Connection, session_id: str) -> bool:
    """Delete the head; messages, turns and search rows go with it, an unfinished turn too."""
    # In the order of append_turn, lest PostgreSQL see each wait for the other.
    found = connection.execute(_DELETE, {"session": session_id}).rowcount > 0
    unfinished.clear(connection, session_id)
    return found


def listing(
    connection: Connection,
    limit: int,
    offset: int,
    source: str,
    include_children: bool,
) -> tuple[tuple[Session, ...], bool]:
    """Return heads by last activity, and whether more follow."""
    statement = select(sessions).order_by(sessions.c.last_active.desc(), sessions.c.id.desc())
    if source:
        statement = statement.where(sessions.c.source == source)
    if not include_children:
        statement = statement.where(sessions.c.parent_id == "")
    rows = connection.execute(statement.limit(limit + 1).offset(offset)).all()
    return tuple(_head(row) for row in rows[:limit]), len(rows) > limit


def find(connection: Connection, query: search.Query, limit: int) -> tuple[SearchHit, ...]:
    """Return the messages that hold all terms, best first."""
    if query.anywhere:
        rows = connection.execute(_containing(query.terms, limit))
    else:
        dialect = connection.dialect.name
        words = query.fts5 if dialect == "sqlite" else query.tsquery
        rows = connection.execute(_FIND[dialect], {"words": words, "limit": limit})
    return tuple(
        SearchHit(
            session_id=row.session_id,
            position=row.position,
            role=row.role,
            snippet=query.snippet(row.text),
            created_at=row.created_at,
        )
        for row in rows
    )


def usage_by_model(connection: Connection, since: float) -> dict[str, Usage]:
    """Return the sums of the turns written from ``since`` on."""
    statement = (
        select(turns.c.model, *(func.sum(turns.c[name]).label(name) for name in _USAGE_COLUMNS))
        .where(turns.c.created_at >= since)
        .group_by(turns.c.model)
    )
    return {row.model: _usage(row) for row in connection.execute(statement)}


def _containing(terms: Sequence[str], limit: int) -> Select[Any]:
    columns = ("session_id", "position", "role", "text", "created_at")
    return (
        select(*(messages.c[name] for name in columns))
        .where(*(messages.c.text.icontains(term, autoescape=True) for term in terms))
        .order_by(messages.c.id.desc())
        .limit(limit)
    )


def _existing(connection: Connection, session_id: str) -> Session:
    head = get(connection, session_id)
    if head is None:
        raise heads.not_found()
    return head


def _head(row: Row[Any]) -> Session:
    return Session(
        id=row.id,
        source=row.source,
        title=row.title,
        preview=row.preview,
        model=row.model,
        system_prompt=row.system_prompt,
        parent_id=row.parent_id,
        user_id=row.user_id,
        started_at=row.started_at,
        last_active=row.last_active,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
        message_count=row.message_count,
        tool_call_count=row.tool_call_count,
        usage=_usage(row),
    )


def _head_row(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "source": session.source,
        "title": session.title,
        "preview": session.preview,
        "model": session.model,
        "system_prompt": session.system_prompt,
        "parent_id": session.parent_id,
        "user_id": session.user_id,
        "started_at": session.started_at,
        "last_active": session.last_active,
        "ended_at": session.ended_at,
        "end_reason": session.end_reason,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        **_usage_row(session.usage),
    }


def _message_row(session_id: str, position: int, message: Message, now: float) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "position": position,
        "role": message.role,
        "body": codec.encode(message),
        "text": codec.searchable(message),
        "created_at": now,
    }


def _usage(row: Row[Any]) -> Usage:
    return Usage(
        input=int(row.input_tokens),
        cached_input=int(row.cached_input_tokens),
        output=int(row.output_tokens),
        reasoning=int(row.reasoning_tokens),
    )


def _usage_row(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "cached_input_tokens": usage.cached_input,
        "output_tokens": usage.output,
        "reasoning_tokens": usage.reasoning,
    }
