"""Deltas folded into the message that they stand for.

Nothing is judged here: an answer without parts is a message without parts.
"""

from collections.abc import AsyncIterable
from dataclasses import dataclass, field

from hermes.events import Delta, Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from hermes.ids import new_call_id
from hermes.messages import Message, Part, ReasoningPart, TextPart, ToolCall, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An assistant message and how it ended."""

    message: Message
    reason: FinishReason
    usage: Usage
    model: str


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Reasoning:
    text: list[str] = field(default_factory=list[str])
    signature: str = ""
    opaque: str = ""


class Collector:
    """Takes the deltas of one answer, in order."""

    def __init__(self) -> None:
        self._parts: list[_Call | _Reasoning | list[str]] = []
        self._calls: dict[int, _Call] = {}
        self._finish: Finish | None = None

    def add(self, delta: Delta) -> None:
        """Take one delta; text and reasoning make parts in the order in which they come."""
        if isinstance(delta, TextDelta):
            self._words().append(delta.text)
        elif isinstance(delta, ReasoningDelta):
            self._think(delta)
        elif isinstance(delta, ToolCallDelta):
            self._call(delta)
        elif isinstance(delta, Finish):
            self._finish = delta

    def _words(self) -> list[str]:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, list):
            return last
        words: list[str] = []
        self._parts.append(words)
        return words

    def _think(self, delta: ReasoningDelta) -> None:
        last = self._parts[-1] if self._parts else None
        # A block ends with its signature; what follows is another block.
        if not isinstance(last, _Reasoning) or last.signature or last.opaque:
            last = _Reasoning()
            self._parts.append(last)
        last.text.append(delta.text)
        last.signature = delta.signature
        last.opaque = delta.opaque

    def _call(self, delta: ToolCallDelta) -> None:
        call = self._calls.get(delta.index)
        if call is None:
            call = self._calls[delta.index] = _Call()
            self._parts.append(call)
        call.id = call.id or delta.id
        call.name = call.name or delta.name
        if delta.arguments:
            call.arguments.append(delta.arguments)

    def answer(self) -> Answer:
        """Return what has come; call ids are made where they are missing, and unique."""
        finish = self._finish or Finish(reason="stop")
        taken: set[str] = set()
        parts: list[Part] = []
        for piece in self._parts:
            if isinstance(piece, list):
                if text := "".join(piece):
                    parts.append(TextPart(text=text))
            elif isinstance(piece, _Reasoning):
                parts.append(
                    ReasoningPart(
                        text="".join(piece.text),
                        signature=piece.signature,
                        opaque=piece.opaque,
                        origin=finish.origin,
                    )
                )
            else:
                call_id = piece.id if piece.id and piece.id not in taken else new_call_id()
                taken.add(call_id)
                arguments = "".join(piece.arguments)
                parts.append(ToolCall(id=call_id, name=piece.name, arguments=arguments))
        return Answer(
            message=Message(role="assistant", parts=tuple(parts)),
            reason=finish.reason,
            usage=finish.usage,
            model=finish.model,
        )


async def collect(deltas: AsyncIterable[Delta]) -> Answer:
    """Return what a whole stream of deltas stands for.

    Raises:
        ProviderError: as the stream.
    """
    collector = Collector()
    async for delta in deltas:
        collector.add(delta)
    return collector.answer()
