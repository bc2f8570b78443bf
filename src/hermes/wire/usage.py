"""Token counts as the protocols report them.

Counts only; no prices and no adding up over calls.
"""

from typing import Any

from hermes.messages import Usage
from hermes.wire.jsonvalue import as_count, as_object


def chat_usage(source: dict[str, Any]) -> Usage:
    """Return the usage of a chat completion (also DeepSeek's and Moonshot's cache members)."""
    prompt = as_object(source.get("prompt_tokens_details"))
    completion = as_object(source.get("completion_tokens_details"))
    cached = (
        as_count(prompt.get("cached_tokens"))
        or as_count(source.get("prompt_cache_hit_tokens"))
        or as_count(source.get("cached_tokens"))
    )
    reasoning = as_count(completion.get("reasoning_tokens")) or as_count(
        source.get("reasoning_tokens")
    )
    return Usage(
        input=as_count(source.get("prompt_tokens")),
        cached_input=cached,
        output=as_count(source.get("completion_tokens")),
        reasoning=reasoning,
    )


def responses_usage(source: dict[str, Any]) -> Usage:
    """Return the usage of a Responses object."""
    given = as_object(source.get("input_tokens_details"))
    made = as_object(source.get("output_tokens_details"))
    return Usage(
        input=as_count(source.get("input_tokens")),
        cached_input=as_count(given.get("cached_tokens")),
        output=as_count(source.get("output_tokens")),
        reasoning=as_count(made.get("reasoning_tokens")),
    )
