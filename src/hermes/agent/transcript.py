"""Keeping a conversation valid for every provider: paired calls, alternating roles.

Nothing is summarised or cut here.
"""

from collections.abc import Iterable
from dataclasses import replace

import orjson

from hermes.messages import Message, TextPart, ToolCall, ToolResult


def tool_message(result: ToolResult) -> Message:
    """Return the message that carries one result."""
    return Message(role="tool", parts=(result,))


def unrun(call: ToolCall, reason: str) -> ToolResult:
    """Return the result of a call that was not run, or not to its end."""
    return ToolResult(call_id=call.id, name=call.name, text=reason, is_error=True)


def presentable(message: Message) -> Message:
    """Return the message with unparsable call arguments replaced by an empty object.

    Endpoints refuse a history with broken JSON in it; what was wrong stands in the call's result.
    """
    if all(_is_object(call.arguments) for call in message.tool_calls):
        return message
    parts = tuple(
        replace(part, arguments="{}")
        if part.kind == "tool_call" and not _is_object(part.arguments)
        else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def alternating(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with neighbouring user messages joined into one.

    They arise when a turn failed before it had an answer.
    """
    joined: list[Message] = []
    for message in messages:
        if message.role == "user" and joined and joined[-1].role == "user":
            parts = (*joined[-1].parts, TextPart(text="\n\n"), *message.parts)
            joined[-1] = replace(joined[-1], parts=parts)
        else:
            joined.append(message)
    return joined
