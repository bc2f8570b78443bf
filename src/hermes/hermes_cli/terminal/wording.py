"""What is said to a person about tools, retries and ends, as plain text.

Colours and places are for the views.
"""

from typing import Any, TypeAlias

import orjson

from hermes.errors import HermesError
from hermes.events import (
    ApprovalRequested,
    ApprovalResolved,
    Retrying,
    SubagentFinished,
    SubagentProgressed,
    SubagentStarted,
    ToolFinished,
    TurnResult,
)
from hermes.hermes_cli.terminal.clean import one_line
from hermes.messages import JsonObject
from hermes.redaction import redact

_SUBJECT = 70
"""Characters of a tool's arguments, or of its failure, that fit a line."""

_MAIN_ARGUMENTS = ("command", "path", "file_path", "pattern", "query", "url", "name", "text")

_NEXT_STEP = {
    "authentication": "Check the key: `hermes config show` says where it is read from.",
    "permission": "Use a key that may use this model, or choose another with --model.",
    "not_found": "`hermes models` lists the models that can be chosen.",
    "rate_limited": "Wait a little, or set model.fallback in config.yaml.",
    "quota_exhausted": "Top up the account, or choose another model with --model.",
    "overloaded": "Try again in a moment, or choose another model with --model.",
    "context_length_exceeded": "Start afresh with /new (or without --session).",
    "provider_connection": "Check that the endpoint runs and model.base_url is right; "
    "`hermes doctor` tests it.",
    "provider_timeout": "Try again, or raise the provider's time limit in config.yaml.",
    "provider_stalled": "Try again, or raise the provider's time limit in config.yaml.",
    "provider_incomplete": "Send the message again.",
    "provider_server": "Try again in a moment; `hermes doctor` tests the endpoint.",
    "session_not_found": "`hermes chat` and then /sessions lists the sessions.",
    "session_store_unavailable": "`hermes doctor` looks at the database.",
}


Aside: TypeAlias = (
    ApprovalRequested | ApprovalResolved | SubagentStarted | SubagentProgressed | SubagentFinished
)
"""What happens beside a tool call."""


def aside(event: Aside) -> str:
    """Return one line about an approval or a sub-agent."""
    match event:
        case ApprovalRequested():
            return f"Asks before it runs: {one_line(event.detail, 200)} ({event.reason})"
        case ApprovalResolved():
            word = "Refused" if event.choice == "deny" else f"Allowed ({event.choice})"
            return f"{word} by {event.by}"
        case SubagentStarted():
            return f"Sub-agent: {one_line(event.goal, 200)}"
        case SubagentProgressed():
            return f"Sub-agent: {one_line(event.line, 200)}"
        case SubagentFinished():
            return f"Sub-agent {event.status} after {seconds(event.seconds)}"


def seconds(value: float) -> str:
    """Return a duration as a person would write it."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 60:
        return f"{value:.0f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def subject(arguments: JsonObject) -> str:
    """Return on one line what a tool is about to work on; secrets are left out."""
    for name in _MAIN_ARGUMENTS:
        value: Any = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return one_line(redact(value[: 8 * _SUBJECT]), _SUBJECT)
    if not arguments:
        return ""
    try:
        text = orjson.dumps(dict(arguments)).decode()
    except (TypeError, ValueError):
        return ""
    return one_line(redact(text[: 8 * _SUBJECT]), _SUBJECT)


def failure(event: ToolFinished) -> str:
    """Return the first words of a failed tool's result, "" of one that did not fail."""
    if not event.result.is_error:
        return ""
    first = event.result.text.strip().partition("\n")[0]
    return one_line(redact(first), 2 * _SUBJECT)


def retrying(event: Retrying) -> str:
    """Return one line that says why a model call is made again, and when."""
    when = f"in {seconds(event.delay)}" if event.delay >= 0.1 else "now"
    where = f" at {event.endpoint}" if event.endpoint else ""
    return f"{_sentence(one_line(event.message, 200))} Trying again{where} {when}."


def error(failed: HermesError) -> str:
    """Return an error on one line, with the next step where one is known."""
    message = _sentence(one_line(redact(failed.message), 2_000))
    step = _NEXT_STEP.get(failed.code, "")
    return f"{message} {step}".rstrip()


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


def ending(result: TurnResult) -> str:
    """Return what the reader must know about how a turn ended, "" when all is well."""
    match result.status:
        case "completed":
            tools = result.tools
            if tools.attempted and not tools.succeeded:
                return "Note: no tool call of this turn succeeded."
            return ""
        case "truncated":
            if result.error is not None:
                return f"Cut short: {error(result.error)}"
            return (
                "Cut short: the answer reached the model's output limit. Say `go on`, "
                "or raise model.max_tokens."
            )
        case "cancelled":
            return "Stopped; what was said is kept." if result.text.strip() else "Stopped."
        case "failed":
            text = error(result.error) if result.error else "The turn failed."
            cut = " The answer above is not whole." if result.text.strip() else ""
            return f"Error: {text}{cut}"
