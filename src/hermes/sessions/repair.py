"""Making a stored conversation one that every provider takes: each tool call with its result.

Pure: nothing is read, written or run here, and a sound conversation comes back as it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hermes.messages import Message, Part, ToolCall, ToolResult

INTERRUPTED = "interrupted before it finished"
"""The text of the result put in for a call that has none."""


def repaired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation with exactly one result right after each tool call.

    A result that stands elsewhere is moved to its call, a missing one becomes an error result,
    a second or an orphan one goes. Of two calls with one id in a message the first is kept.
    A result belongs to the last call of its id before it: providers use ids again in later steps.
    """
    if _is_sound(messages):
        return tuple(messages)
    entries = _matched(messages)
    return tuple(message for entry in entries for message in entry.messages())


@dataclass(slots=True)
class _Entry:
    """A message without tool results, and the results of its calls as they were found."""

    message: Message
    results: dict[str, ToolResult | None] = field(default_factory=dict[str, ToolResult | None])
    ids: dict[str, str] = field(default_factory=dict[str, str])

    def messages(self) -> Iterable[Message]:
        """Return the message and, in the order of its calls, one message a result."""
        yield self.message
        for call in self.message.tool_calls:
            result = self.results[call.id] or _interrupted(call)
            yield Message(role="tool", parts=(result,), id=self.ids.get(call.id, ""))


def _matched(messages: Sequence[Message]) -> list[_Entry]:
    entries: list[_Entry] = []
    owners: dict[str, _Entry] = {}
    for message in messages:
        for result in message.tool_results:
            owner = owners.get(result.call_id)
            if owner and owner.results[result.call_id] is None:
                owner.results[result.call_id] = result
                if len(message.parts) == 1:
                    owner.ids[result.call_id] = message.id
        kept = _own_parts(message)
        if not kept and (message.parts or message.role == "tool"):
            continue
        entry = _Entry(replace(message, parts=kept) if kept != message.parts else message)
        for call in entry.message.tool_calls:
            entry.results[call.id] = None
            owners[call.id] = entry
        entries.append(entry)
    return entries


def _own_parts(message: Message) -> tuple[Part, ...]:
    """Return the parts that may stand in a message of its role, calls of one id once."""
    if message.role == "tool":
        return ()
    calls: set[str] = set()
    kept: list[Part] = []
    for part in message.parts:
        if part.kind == "tool_result":
            continue
        if part.kind == "tool_call":
            if message.role != "assistant" or part.id in calls:
                continue
            calls.add(part.id)
        kept.append(part)
    return tuple(kept)


def _is_sound(messages: Sequence[Message]) -> bool:
    """Whether every call's results, one each, stand in the tool messages right after it."""
    awaited: set[str] = set()
    for message in messages:
        answered = [result.call_id for result in message.tool_results]
        calls = [call.id for call in message.tool_calls]
        if message.role == "tool":
            only_results = len(answered) == len(message.parts) > 0
            if not only_results or not _take(answered, awaited):
                return False
            continue
        if awaited or answered or (calls and message.role != "assistant"):
            return False
        awaited = set(calls)
        if len(awaited) != len(calls):
            return False
    return not awaited


def _take(answered: Sequence[str], awaited: set[str]) -> bool:
    for call_id in answered:
        if call_id not in awaited:
            return False
        awaited.remove(call_id)
    return True


def _interrupted(call: ToolCall) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, text=INTERRUPTED, is_error=True)
