"""What whole and streamed chat completions have in common: headers and usage."""

from typing import Any

from hermes.gateway.platforms.api_server.bridge import Ending
from hermes.gateway.platforms.api_server.parse import ChatRequest
from hermes.messages import Usage


def answer_headers(chat: ChatRequest, session_id: str, end: Ending | None) -> dict[str, str]:
    """Return the headers that tell a client of its session and what was not honoured."""
    headers = {"X-Hermes-Session-Id": (end.session_id if end else "") or session_id}
    if chat.session_key:
        headers["X-Hermes-Session-Key"] = chat.session_key
    if chat.ignored:
        headers["X-Hermes-Ignored-Parameters"] = ", ".join(chat.ignored)
    if end is not None and end.finish_reason != "stop":
        headers["X-Hermes-Completed"] = "false"
        headers["X-Hermes-Partial"] = "true" if end.partial else "false"
    return headers


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return usage as chat completions have it."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
