"""Sessions as data: a conversation's head and its stored messages.

How they are stored is for the stores to know.
"""

from dataclasses import dataclass, field

from hermes.messages import Message, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The head of a conversation; times are Unix seconds.

    ``source`` says which surface made it (``cli``, ``api_server``, ``voice``). ``preview`` is the
    start of the first thing the user said; the store keeps it, the counts and ``usage``.
    """

    id: str
    source: str
    title: str = ""
    preview: str = ""
    model: str = ""
    system_prompt: str = ""
    parent_id: str = ""
    user_id: str = ""
    started_at: float = 0.0
    last_active: float = 0.0
    ended_at: float | None = None
    end_reason: str = ""
    message_count: int = 0
    tool_call_count: int = 0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message with its place: ``position`` counts from 0 within the session."""

    session_id: str
    position: int
    message: Message
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message found by its words; ``snippet`` marks the words with ``**``."""

    session_id: str
    position: int
    role: str
    snippet: str
    created_at: float
