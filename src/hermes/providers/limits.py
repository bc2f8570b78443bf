"""How long to wait for a model, and how much to ask of it at once.

Values only: who keeps the time is the call, who counts the calls is the chain.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

_REASONING_NAMES = re.compile(
    r"(?:^|[/:_-])(?:o[1-9](?:$|[-.:@])|gpt-[5-9]|r1(?:$|[-.:@])|qwq|qwen3|magistral|glm-[4-9]\.?[5-9]?"
    r"|kimi-k[2-9]|minimax-m|claude-(?:opus|sonnet|haiku|fable|mythos)-[4-9]|claude-3-7|grok-[4-9]"
    r"|gemini-(?:2\.5|[3-9])|gpt-oss|deepseek-(?:r|v[4-9]))|think|reason|deep-?research",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of an endpoint and its model in seconds; ``None`` lets the call choose.

    ``connect`` covers name, connection and TLS. ``first_content`` runs from the request to the
    first word, ``stall`` between two pieces of content; keep-alives count for neither.
    ``whole_answer`` stands in place of both when the answer is not streamed. A value that is
    set is used as it is, whatever the model. ``max_concurrent`` calls of one model run at
    once, 0 for any number.
    """

    connect: float = 10.0
    first_content: float | None = None
    stall: float | None = None
    whole_answer: float | None = None
    max_concurrent: int = 0


class Patience(NamedTuple):
    """Limits as one call applies them, in seconds."""

    first_content: float
    stall: float
    whole_answer: float


_REMOTE = Patience(180.0, 120.0, 600.0)
_REASONING = Patience(600.0, 300.0, 1200.0)
_LOCAL = Patience(900.0, 900.0, 1800.0)


def is_reasoning_model(model: str) -> bool:
    """Whether a model of this name may think for minutes before its first word."""
    return _REASONING_NAMES.search(model) is not None


def patience(limits: Limits, *, local: bool, reasoning: bool) -> Patience:
    """Return the limits of one call.

    A local endpoint reads a cold prompt for minutes, a reasoning model thinks unseen; both are
    given more time than others unless ``limits`` says otherwise.
    """
    usual = _LOCAL if local else _REASONING if reasoning else _REMOTE
    return Patience(
        usual.first_content if limits.first_content is None else limits.first_content,
        usual.stall if limits.stall is None else limits.stall,
        usual.whole_answer if limits.whole_answer is None else limits.whole_answer,
    )
