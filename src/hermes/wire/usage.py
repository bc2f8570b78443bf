"""Token counts as the protocols report them.

Counts only; no prices and no adding up over calls.
"""

from dataclasses import replace
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


def merge_anthropic_usage(known: Usage, source: dict[str, Any]) -> Usage:
    """Return ``known`` brought up to date by a message's usage.

    The start has the input, the end the output; some endpoints report all of it at the end, and
    zeros before. Their input does not hold what the cache read or wrote; ours does.
    """
    cached = as_count(source.get("cache_read_input_tokens"))
    fresh = as_count(source.get("input_tokens"))
    written = as_count(source.get("cache_creation_input_tokens"))
    thinking = as_object(source.get("output_tokens_details")).get("thinking_tokens")
    usage = replace(
        known,
        output=as_count(source.get("output_tokens")) or known.output,
        reasoning=as_count(thinking) or known.reasoning,
    )
    total = fresh + cached + written
    if total < known.input or not total:
        return usage
    return replace(usage, input=total, cached_input=cached)
