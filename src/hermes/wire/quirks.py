"""How an endpoint departs from its protocol, as data; and what a refusal teaches about it.

No endpoint is named here: the registry of providers holds the values. Nothing is remembered
here either: who learns keeps the new value for the endpoint and model it concerns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hermes.errors import ProviderStatusError
from hermes.wire.jsonvalue import as_object

_TOKEN_KEYS = frozenset({"max_tokens", "max_completion_tokens"})
_ESSENTIAL = frozenset({"model", "messages", "input", "stream"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """What a codec must know of the endpoint beyond the protocol.

    ``origin`` names the endpoint; reasoning parts of any other origin are never sent to it.
    ``dropped`` are body parameters that it refuses, ``a.b`` for a nested one; they win over
    everything. ``send_stream_options`` asks for usage at the end of a chat stream.
    ``strip_reasoning`` sends no reasoning at all, not even the endpoint's own.
    ``reasoning_field`` is the member of a chat message in which the endpoint wants its own
    reasoning back; empty: it does not. ``effort_as_object`` sends ``reasoning: {effort}`` on
    chat in place of ``reasoning_effort``. ``effort_none`` is its word for "do not think"; empty:
    the parameter is left out. ``system_role`` is the chat role of instructions.
    ``required_choice`` is its word for "call some tool". ``null_content`` is whether an
    assistant message with calls and no text has null as content, else an empty string.
    ``name_in_results`` puts the tool's name in tool messages. ``call_id_length`` is the number
    of letters and digits that a call's id must have, 0 for any. ``default_max_tokens`` is sent
    where the protocol demands a limit and the request has none. ``adaptive_thinking`` is whether
    an Anthropic model thinks by effort and not by budget; ``None``: by the model's name.
    """

    origin: str = ""
    max_tokens_key: str = "max_tokens"
    dropped: frozenset[str] = frozenset()
    send_stream_options: bool = True
    strip_reasoning: bool = False
    reasoning_field: str = ""
    effort_as_object: bool = False
    effort_none: str = "none"
    system_role: str = "system"
    required_choice: str = "required"
    null_content: bool = True
    name_in_results: bool = False
    call_id_length: int = 0
    default_max_tokens: int = 8192
    adaptive_thinking: bool | None = None


def learn(quirks: Quirks, error: ProviderStatusError) -> Quirks | None:
    """Return the quirks under which the refused request is worth one more try, or ``None``.

    A refused name of the output limit is exchanged for the other one; any other refused
    parameter is dropped, unless the protocol cannot do without; a refused way to ask for
    thinking is exchanged for the other; a refused thinking signature takes all reasoning out.
    """
    if error.code == "invalid_signature":
        return None if quirks.strip_reasoning else replace(quirks, strip_reasoning=True)
    name = error.parameter
    if error.code != "unsupported_parameter" or not name or name in quirks.dropped:
        return None
    if "[" in name or name.split(".")[0] in _ESSENTIAL:
        return None
    if name.startswith("thinking.type") and quirks.adaptive_thinking is None:
        return replace(quirks, adaptive_thinking="adaptive" not in name)
    if name == quirks.max_tokens_key and name in _TOKEN_KEYS:
        other = next(iter(_TOKEN_KEYS - {name}))
        if other not in quirks.dropped:
            refused = quirks.dropped | {name}
            return replace(quirks, max_tokens_key=other, dropped=refused)
    return replace(quirks, dropped=quirks.dropped | {name})


def finish_body(
    body: dict[str, Any], extra: Mapping[str, Any], dropped: frozenset[str]
) -> dict[str, Any]:
    """Return ``body`` with ``extra`` laid over it and the ``dropped`` parameters taken out."""
    finished = {**body, **extra}
    for name in dropped:
        finished = _without(finished, name.split("."))
    return finished


def _without(value: dict[str, Any], path: list[str]) -> dict[str, Any]:
    head, rest = path[0], path[1:]
    if head not in value:
        return value
    if not rest:
        return {key: member for key, member in value.items() if key != head}
    inner = as_object(value[head])
    return {**value, head: _without(inner, rest)} if inner else value
