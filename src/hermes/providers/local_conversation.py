"""A conversation cut down to what a small model can use: short, plain words, recent.

Tool calls and results become text, since these models answer better from it than from tool
messages. All state is read from the messages; nothing is remembered between steps.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from hermes.messages import JsonObject, Message, ToolCall, ToolResult, text_message
from hermes.providers.local_prompts import IDENTITY
from hermes.wire.jsonvalue import as_object

HISTORY_TOKENS = 4000
"""Most of the earlier conversation that is shown; a cold token costs about 7 ms."""

PROMPT_TOKENS = 6500
"""What history and the current question share of the context, the answer taken off."""

MOST_CALLS = 3
"""Calls after which a turn is answered without choosing another."""

_SYSTEM_CHARS = 600
_LAST_RESULT_CHARS = 6000
_EARLIER_RESULT_CHARS = 2000
_PAST_RESULT_CHARS = 600
_ROUTE_RESULT_CHARS = 200
_BYTES_PER_TOKEN = 3.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A tool call and what came of it."""

    call: ToolCall
    result: ToolResult

    @property
    def key(self) -> tuple[str, str]:
        """What makes two calls the same: the name and the arguments, however they are written."""
        return self.call.name, _canonical(self.call.arguments)

    def told(self, limit: int) -> str:
        """The exchange in words, its result cut to ``limit`` characters."""
        outcome = "failed" if self.result.is_error else "returned"
        return (
            f"[{self.call.name} {self.call.arguments} {outcome}]\n"
            f"{_cut(self.result.text, limit)}\n[end of result]"
        )


@dataclass(slots=True, kw_only=True)
class Turn:
    """One question, what was done for it and what was answered."""

    question: str = ""
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The turns of a request, oldest first; the last one is to be answered."""

    system: str
    past: tuple[Turn, ...]
    current: Turn

    def may_route(self) -> bool:
        """Whether another tool call may be chosen: not after a repeated one or enough of them."""
        keys = [exchange.key for exchange in self.current.exchanges]
        return len(keys) < MOST_CALLS and len(set(keys)) == len(keys)

    def has_made(self, name: str, arguments: JsonObject) -> bool:
        """Whether this turn has made that very call."""
        key = name, _canonical(json.dumps(dict(arguments)))
        return any(exchange.key == key for exchange in self.current.exchanges)

    def told(self) -> str:
        """All that has been said and found out."""
        turns = (*self.past, self.current)
        return "\n".join(f"{_told(turn)}\n{turn.answer}" for turn in turns)

    def route_question(self) -> str:
        """The question with a glimpse of what has been done for it."""
        turn = self.current
        if not turn.exchanges:
            return turn.question
        done = [
            f"[{exchange.call.name} {exchange.call.arguments} gave:"
            f" {exchange.result.text[:_ROUTE_RESULT_CHARS]!r}]"
            for exchange in turn.exchanges
        ]
        return "\n".join([turn.question, *done, "Choose reply if this is enough for an answer."])

    def reply_messages(self) -> tuple[Message, ...]:
        """The messages for the answer itself: no tools, the newest turns that fit."""
        question = _asked(self.current)
        room = min(HISTORY_TOKENS, PROMPT_TOKENS - estimate_tokens(question))
        kept: list[Message] = []
        for turn in reversed(self.past):
            pair = (text_message("user", _told(turn)), text_message("assistant", turn.answer))
            room -= sum(estimate_tokens(message.text) for message in pair)
            if room < 0:
                break
            kept[:0] = pair
        system = text_message("system", self.system)
        return (system, *kept, text_message("user", question))


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """Sort messages into turns; a call without a result and a turn without an answer are left out.

    The system text is ours, since a small model is confused by a long one. The last paragraphs of
    the given one follow as far as they are short, back to one that speaks of tools: these are
    instructions of the client, and the answer itself is made without tools.
    """
    system: list[str] = []
    turns: list[Turn] = []
    calls: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "system":
            system.append(message.text)
        elif message.role == "user":
            turns.append(Turn(question=_words(message)))
        elif turns:
            _add(turns[-1], message, calls)
    current = turns.pop() if turns else Turn()
    past = tuple(turn for turn in turns if turn.answer)
    return Conversation(system=_short_system("\n\n".join(system)), past=past, current=current)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens ``text`` has, rather too many than too few."""
    return int(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN) + 8


def _add(turn: Turn, message: Message, calls: dict[str, ToolCall]) -> None:
    if message.role == "assistant":
        turn.answer = message.text or turn.answer
        calls.update({call.id: call for call in message.tool_calls})
    for result in message.tool_results:
        call = calls.pop(result.call_id, None)
        if call is not None:
            turn.exchanges.append(Exchange(call=call, result=result))


def _words(message: Message) -> str:
    if any(part.kind == "image" for part in message.parts):
        return f"{message.text}\n[a picture, which the local model cannot see]".strip()
    return message.text


def _asked(turn: Turn) -> str:
    if not turn.exchanges:
        return turn.question
    told = [exchange.told(_EARLIER_RESULT_CHARS) for exchange in turn.exchanges[:-1]]
    told.append(turn.exchanges[-1].told(_LAST_RESULT_CHARS))
    return "\n\n".join([turn.question, *told, "Answer my question from this."])


def _told(turn: Turn) -> str:
    told = [exchange.told(_PAST_RESULT_CHARS) for exchange in turn.exchanges]
    return "\n\n".join([turn.question, *told])


def _cut(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long, and how much lies between."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n[{len(text) - head - tail} characters left out]\n{text[-tail:]}"


def _short_system(text: str) -> str:
    """Ours, and the last paragraphs of ``text`` that fit, back to one on tools."""
    kept: list[str] = []
    room = _SYSTEM_CHARS
    for paragraph in reversed(text.split("\n\n")):
        room -= len(paragraph)
        if room < 0 or "tool" in paragraph.lower():
            break
        kept.insert(0, paragraph.strip())
    return "\n\n".join([IDENTITY, *kept]).strip()


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(as_object(json.loads(arguments or "{}")), sort_keys=True)
    except ValueError:
        return arguments
