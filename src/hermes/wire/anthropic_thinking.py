"""How much an Anthropic model is to think, in the form that the model takes.

Models since 4.6 choose for themselves under an effort; earlier ones and other makers' models
behind this protocol have a budget of tokens. https://docs.anthropic.com/en/docs/build-with-claude
"""

import re
from typing import Any, cast

from hermes.messages import ModelOptions
from hermes.wire.quirks import Quirks

_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384, "xhigh": 32768}
_MIN_BUDGET = 1024
_OLD_CLAUDE = re.compile(
    r"claude-(?:[123]|instant|(?:opus|sonnet|haiku)-4(?:[-.][0-5](?!\d))?(?:$|[-@]\d{6}|[^\d.-]))"
)
_EFFORTS = {"minimal": "low"}


def lay_thinking(body: dict[str, Any], options: ModelOptions, quirks: Quirks) -> None:
    """Add to ``body`` what ``options.reasoning_effort`` asks for; without one the model decides.

    With thinking there can be no temperature and no forced tool. It is left off where the
    conversation stands behind a tool call whose own thinking cannot be sent back.
    """
    effort = options.reasoning_effort
    if effort is None:
        return
    adaptive = _is_adaptive(quirks, body["model"])
    if effort == "none":
        if adaptive:
            body["thinking"] = {"type": "disabled"}
        return
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        return
    if adaptive:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        word = _EFFORTS.get(effort, effort)
        if word == "xhigh" and "-4-6" in body["model"]:
            word = "max"
        body["output_config"] = {**body.get("output_config", {}), "effort": word}
        if options.max_output_tokens is None:
            body["max_tokens"] += _budget(effort)
    elif _may_think(body["messages"]):
        _lay_budget(body, options, effort)
    if "thinking" in body:
        body.pop("temperature", None)
        body.pop("top_p", None)


def _is_adaptive(quirks: Quirks, model: str) -> bool:
    if quirks.adaptive_thinking is not None:
        return quirks.adaptive_thinking
    return "claude" in model and _OLD_CLAUDE.search(model) is None


def _budget(effort: str) -> int:
    return _BUDGETS.get(effort, _BUDGETS["medium"])


def _lay_budget(body: dict[str, Any], options: ModelOptions, effort: str) -> None:
    """Thinking counts against the limit: a given limit is shared, the default one grows."""
    budget = _budget(effort)
    limit = options.max_output_tokens
    if limit is None:
        body["max_tokens"] += budget
    else:
        budget = min(budget, limit // 2)
    if budget >= _MIN_BUDGET:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _may_think(messages: list[dict[str, Any]]) -> bool:
    """Whether the last answer is over, or begins with thinking as the endpoint then demands."""
    last = next((m for m in reversed(messages) if m["role"] == "assistant"), None)
    if last is None:
        return True
    kinds = [block["type"] for block in cast("list[dict[str, Any]]", last["content"])]
    return "tool_use" not in kinds or kinds[0] in ("thinking", "redacted_thinking")
