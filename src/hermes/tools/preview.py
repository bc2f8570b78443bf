"""Long text made short: for the model with head and tail, for people as a redacted preview.

Nothing is stored here; who cuts keeps the whole elsewhere.
"""

from collections.abc import Iterator

from hermes.messages import ToolResult
from hermes.redaction import redact

PREVIEW_CHARS = 500
"""Length of a tool result's preview in events."""

_LINE_REACH = 200
_SECRET_REACH = 5_000
"""Characters looked at on both sides of a cut: a private key of 4096 bits is 3,300 long."""
_FIRST_STEP = 64
_ELLIPSIS = "\n…\n"


def preview(result: ToolResult, limit: int = PREVIEW_CHARS) -> str:
    """Return at most ``limit`` characters of a result, free of secrets.

    The whole text is redacted before it is cut, so no cut leaves a part of a secret. Both ends
    are kept: failures say at the end what happened.
    """
    text = redact(result.text)
    if len(text) <= limit:
        return text
    if limit <= len(_ELLIPSIS):
        return text[: max(limit, 0)]
    room = limit - len(_ELLIPSIS)
    tail = room // 3
    return text[: room - tail] + _ELLIPSIS + (text[-tail:] if tail else "")


def cut_middle(text: str, limit: int, advice: str = "") -> str:
    """Return head and tail of a text, at most ``limit`` characters with the mark between them.

    The mark says how much was left out; ``advice`` says in it how to get the rest. Cuts fall on
    line ends where one is near, and never inside what ``redact`` masks: redacting the result later
    hides as much as redacting the whole would have.
    """
    if len(text) <= limit:
        return text
    room = max(limit - len(left_out(len(text), advice)), 0)
    head = head_of(text, (room + 1) // 2)
    tail = tail_of(text, room // 2)
    cut = head + left_out(len(text) - len(head) - len(tail), advice) + tail
    return cut if len(cut) <= limit else cut[:limit]


def left_out(count: int, advice: str = "", unit: str = "characters") -> str:
    """Return the mark that stands for what was left out."""
    return f"\n[... {count:,} {unit} left out{'; ' + advice if advice else ''} ...]\n"


def head_of(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of the beginning; the cut splits no secret."""
    if len(text) <= limit:
        return text
    for position in _places_before(text, limit):
        if _splits_nothing(text, position):
            return text[:position]
    return ""


def tail_of(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of the end; the cut splits no secret."""
    if len(text) <= limit:
        return text
    for position in _places_after(text, len(text) - max(limit, 0)):
        if _splits_nothing(text, position):
            return text[position:]
    return ""


def _splits_nothing(text: str, position: int) -> bool:
    """Whether redacting both sides of a cut gives what redacting before the cut would give."""
    before = text[max(position - _SECRET_REACH, 0) : position]
    after = text[position : position + _SECRET_REACH]
    return redact(before + after) == redact(before) + redact(after)


def _places_before(text: str, limit: int) -> Iterator[int]:
    """Positions to cut at, best first: a near line end, then ever further back."""
    if limit <= 0:
        return
    line = text.rfind("\n", max(limit - _LINE_REACH, 0), limit)
    position = line + 1 if line > 0 else limit
    step = _FIRST_STEP
    while position > 0:
        yield position
        position = limit - step
        step *= 2


def _places_after(text: str, start: int) -> Iterator[int]:
    """Positions to cut at, best first: a near line end, then ever further on."""
    line = text.find("\n", start, start + _LINE_REACH)
    position = line + 1 if line >= 0 else start
    step = _FIRST_STEP
    while position < len(text):
        yield position
        position = start + step
        step *= 2
