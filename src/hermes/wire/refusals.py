"""The request parameter that an endpoint refuses, read out of its words.

It names the parameter; whether to drop or rename it is for ``quirks.learn`` to say.
"""

import re

_QUOTE = "[`'\"]?"
_NAME = r"([A-Za-z_][\w.\[\]-]{0,80})"


def _patterns(*shapes: str) -> tuple[re.Pattern[str], ...]:
    parts = {"NAME": f"{_QUOTE}{_NAME}{_QUOTE}"}
    return tuple(re.compile(shape.format(**parts), re.IGNORECASE) for shape in shapes)


_NAMES_ANY = _patterns(
    r"(?:unsupported|unknown|unrecognized|unexpected|extraneous|invalid)"
    r" (?:request )?(?:parameter|argument|field|key)s?(?: supplied| name)?\s?: {{0,2}}{NAME}",
    r"(?:unsupported|unknown|unrecognized) (?:parameter|argument|field) {NAME}",
    r"unexpected keyword argument {NAME}",
    r"unknown name \\?{NAME}",
    r"{NAME}: extra inputs are not permitted",
    r"additional properties are not allowed \({NAME}",
    r"property {NAME} is unsupported",
)
"""Sentences that only ever name a parameter."""

_NAMES_KNOWN = _patterns(
    r"unsupported value: {NAME}",
    r"{NAME}:? (?:does|do) not support",
    r"{NAME}:? (?:is|are) (?:not|no longer) (?:supported|permitted|allowed|accepted)",
    r"{NAME}:? (?:parameter )?(?:is|are) (?:unsupported|deprecated|unknown)",
    r"not support(?:ed)? (?:the )?(?:parameter |argument |field )?{NAME}",
    r"not support(?:ed)? (?:setting |use of )(?:the )?{NAME}",
)
"""Sentences that may as well be about a model or a picture: only known names count."""

_KNOWN = frozenset(
    {"temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens"}
    | {"stop", "stop_sequences", "seed", "reasoning_effort", "reasoning", "thinking", "tools"}
    | {"tool_choice", "parallel_tool_calls", "response_format", "stream_options", "logprobs"}
    | {"frequency_penalty", "presence_penalty", "logit_bias", "n", "user", "store", "metadata"}
    | {"include", "text", "service_tier", "verbosity", "prompt_cache_key", "strict", "min_p"}
)
_CODES = re.compile(r"unsupported_parameter|unsupported_value|unknown_parameter|unrecognized_")


def refused_parameter(code: str, message: str, parameter: str) -> str:
    """Return the name of the parameter that the endpoint does not take, else an empty string.

    ``code`` and ``parameter`` are those of the error object. A nested parameter is ``a.b``.
    """
    if parameter and _CODES.search(code.lower()):
        return parameter
    if "adaptive thinking is not supported" in message.lower():
        return "thinking.type.adaptive"
    for pattern in _NAMES_ANY:
        found = pattern.search(message)
        if found:
            return _fullest(found[1], parameter)
    for pattern in _NAMES_KNOWN:
        for found in pattern.finditer(message):
            name = found[1].rstrip(".")
            if name.lower().split(".")[0] in _KNOWN or name == parameter:
                return _fullest(name, parameter)
    return ""


def _fullest(name: str, parameter: str) -> str:
    name = name.rstrip(".")
    return parameter if parameter.endswith(f".{name}") else name
