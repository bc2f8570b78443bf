"""The session store for synchronous callers, in dicts of the OpenAI shape.

A facade alone: what is stored and how is the store's matter. Its calls block, so they belong on
another thread than an event loop's; on one they are refused.
"""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hermes.messages import ImagePart, Message, TextPart, ToolCall, ToolResult, Usage
from hermes.sessions.model import SearchHit, Session
from hermes.sessions.store import SessionStore

T = TypeVar("T")


class SessionDB:
    """Sessions as dicts, over any ``SessionStore``; ``close`` closes the store.

    Errors are the store's. Not for use on a thread whose event loop runs (``RuntimeError``).
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    @classmethod
    def open(cls, url_or_path: str | Path) -> "SessionDB":
        """Open a database of its own; raises as ``SqlSessionStore.open`` does."""
        from hermes.sessions.sql import SqlSessionStore, open_workers

        return cls(SqlSessionStore(open_workers(url_or_path)))

    def create_session(
        self,
        session_id: str = "",
        source: str = "api_server",
        *,
        title: str = "",
        model: str = "",
        system_prompt: str = "",
        user_id: str = "",
    ) -> dict[str, Any]:
        """Store a new session and return it; an empty id is made."""
        session = Session(
            id=session_id,
            source=source,
            title=title,
            model=model,
            system_prompt=system_prompt,
            user_id=user_id,
        )
        return session_dict(_run(self._store.create(session)))

    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Return a session's head as a dict, or None."""
        session = _run(self._store.get(session_id))
        return session_dict(session) if session else None

    def get_messages_as_conversation(self, session_id: str) -> list[dict[str, Any]]:
        """Return the history as Chat Completions messages; an unknown session has none."""
        if _run(self._store.get(session_id)) is None:
            return []
        messages = _run(self._store.history(session_id))
        return [entry for message in messages for entry in conversation_entries(message)]

    def append_messages(
        self, session_id: str, messages: list[Message], *, usage: Usage | None = None
    ) -> int:
        """Add messages as one turn; return how many the session has now."""
        return _run(self._store.append_turn(session_id, messages, usage=usage or Usage()))

    def set_session_title(self, session_id: str, title: str) -> dict[str, Any]:
        """Name a session and return it."""
        return session_dict(_run(self._store.update(session_id, title=title)))

    def end_session(self, session_id: str, end_reason: str) -> dict[str, Any]:
        """Mark a session as ended and return it."""
        return session_dict(_run(self._store.update(session_id, end_reason=end_reason)))

    def delete_session(self, session_id: str) -> bool:
        """Remove a session; return whether there was one."""
        return _run(self._store.delete(session_id))

    def list_sessions(
        self, *, limit: int = 50, offset: int = 0, source: str = ""
    ) -> list[dict[str, Any]]:
        """Return sessions by last activity, newest first."""
        found, _more = _run(self._store.list(limit=limit, offset=offset, source=source))
        return [session_dict(session) for session in found]

    def search_messages(self, words: str, *, limit: int = 20) -> list[SearchHit]:
        """Find messages that hold all of ``words``; any text is a valid query."""
        return list(_run(self._store.search(words, limit=limit)))

    def close(self) -> None:
        """Close the store."""
        _run(self._store.aclose())


def session_dict(session: Session) -> dict[str, Any]:
    """Return a head under the names of the HTTP surface; empty texts are ``None``."""
    return {
        "id": session.id,
        "source": session.source,
        "user_id": session.user_id or None,
        "title": session.title or None,
        "preview": session.preview or None,
        "model": session.model or None,
        "system_prompt": session.system_prompt or None,
        "parent_session_id": session.parent_id or None,
        "started_at": session.started_at,
        "last_active": session.last_active,
        "ended_at": session.ended_at,
        "end_reason": session.end_reason or None,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        "input_tokens": session.usage.input,
        "output_tokens": session.usage.output,
        "cache_read_tokens": session.usage.cached_input,
        "reasoning_tokens": session.usage.reasoning,
    }


def conversation_entries(message: Message) -> list[dict[str, Any]]:
    """Return a message as Chat Completions has it: one entry, or one for each tool result."""
    if message.role == "tool":
        return [_result_entry(result) for result in message.tool_results]
    entry: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.reasoning:
        entry["reasoning_content"] = message.reasoning
    if message.tool_calls:
        entry["tool_calls"] = [_call_entry(call) for call in message.tool_calls]
    return [entry]


def _content(message: Message) -> Any:
    if any(part.kind == "image" for part in message.parts):
        shown = (part for part in message.parts if isinstance(part, TextPart | ImagePart))
        return [_content_part(part) for part in shown]
    return message.text if message.text or not message.tool_calls else None


def _content_part(part: TextPart | ImagePart) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    image = {"url": part.url} | ({"detail": part.detail} if part.detail else {})
    return {"type": "image_url", "image_url": image}


def _call_entry(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _result_entry(result: ToolResult) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "name": result.name,
        "content": result.text,
    }


def _run(operation: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(operation)
    operation.close()
    raise RuntimeError("SessionDB blocks: call it on another thread than the event loop's")
