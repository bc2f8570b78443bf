"""What the small local model is told, as data: the routing prompt, its examples, its schema.

A model of this size follows examples better than rules, so each tool brings its own. Nothing is
asked of the model here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from hermes.messages import JsonObject, Message, ModelOptions, ModelRequest, ToolSpec, text_message
from hermes.wire.jsonvalue import as_object

REPLY = "reply"
"""The route that calls no tool."""

IDENTITY = (
    "You are Hermes, a helpful assistant on the user's computer. Be brief and exact. Answer in the"
    " language of the user."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedTool:
    """A tool that the small model can choose; every argument is text and required.

    ``examples`` are things that a user may say, each with the arguments to answer with.
    ``quoted`` are the arguments whose value must have been named, as small models make up files.
    """

    name: str
    hint: str
    arguments: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    examples: tuple[tuple[str, Mapping[str, str]], ...] = ()

    def invents(self, arguments: JsonObject, told: str) -> bool:
        """Whether a quoted argument, read as a file name, does not occur in ``told``."""
        names = (PurePath(str(arguments[name])).stem for name in self.quoted)
        return not all(name.lower() in told.lower() for name in names)

    def fits(self, spec: ToolSpec) -> bool:
        """Whether a call with just these arguments is one that ``spec`` allows."""
        required = set(spec.parameters.get("required", ()))
        known = set(spec.parameters.get("properties", {}))
        return required <= set(self.arguments) <= known


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What the model chose; no tool is a reply."""

    tool: RoutedTool | None = None
    arguments: JsonObject = field(default_factory=dict[str, Any])


ROUTED_TOOLS = (
    RoutedTool(
        name="current_time",
        hint="the date and time now",
        examples=(("got the time?", {}),),
    ),
    RoutedTool(
        name="read_file",
        hint="what stands in a file that the user names",
        arguments=("path",),
        quoted=("path",),
        examples=(("what does shopping.md say?", {"path": "shopping.md"}),),
    ),
    RoutedTool(
        name="terminal",
        hint="run a shell command, e.g. `ls -la`, `df -h`, `git log`",
        arguments=("command",),
        examples=(
            ("which node do I have?", {"command": "node --version"}),
            ("list what is in the current folder", {"command": "ls -la"}),
            ("remove the folder photos", {"command": "rm -r photos"}),
            ("is postgres up?", {"command": "pgrep -a postgres"}),
        ),
    ),
    RoutedTool(
        name="search_files",
        hint="find the lines in files that match",
        arguments=("pattern",),
        examples=(("where is the word budget used?", {"pattern": "budget"}),),
    ),
)
"""The tools that have examples, in the order in which they are offered."""

_SMALL_TALK = (
    "hi",
    "who painted the Mona Lisa?",
    "how deep is the ocean?",
    "write a function that sorts names",
    "ok, bye",
)
"""Said between the tools' examples; each is answered with ``reply``."""

_RULES = (
    "You choose how an assistant on the user's computer handles the last message. Answer with one"
    ' JSON object {"tool": ..., "arguments": {...}}.'
)
_REPLY_LINE = "- reply(): chat, explain, translate, calculate, write, know things; no computer used"
_CHOICE = (
    "Choose reply unless the message is about this computer, its files, a command or the clock."
)


def offered(specs: Sequence[ToolSpec]) -> tuple[RoutedTool, ...]:
    """Return the tools of a request that the model has examples for."""
    by_name = {spec.name: spec for spec in specs}
    return tuple(
        tool for tool in ROUTED_TOOLS if tool.name in by_name and tool.fits(by_name[tool.name])
    )


def route_request(
    tools: Sequence[RoutedTool],
    allowed: Sequence[RoutedTool],
    question: str,
    *,
    may_reply: bool = True,
    most_tokens: int = 200,
) -> ModelRequest:
    """Return the request for a choice among ``allowed``, which are some of ``tools``.

    All but its last message depend on ``tools`` alone, so that the model keeps them read.
    """
    options = ModelOptions(
        temperature=0.0,
        max_output_tokens=most_tokens,
        response_format=_format(allowed, may_reply=may_reply),
    )
    return ModelRequest(model="local", messages=_messages(tools, question), options=options)


def read_route(text: str, tools: Sequence[RoutedTool]) -> Route:
    """Return what the model chose; an answer that was cut or names no offered tool is a reply."""
    try:
        answer = as_object(json.loads(text))
    except ValueError:
        return Route()
    arguments = as_object(answer.get("arguments"))
    for tool in tools:
        if answer.get("tool") == tool.name and set(arguments) == set(tool.arguments):
            return Route(tool=tool, arguments=arguments)
    return Route()


def _messages(tools: Sequence[RoutedTool], question: str) -> tuple[Message, ...]:
    lines = [_RULES, _REPLY_LINE]
    lines += [f"- {tool.name}({', '.join(tool.arguments)}): {tool.hint}" for tool in tools]
    messages = [text_message("system", "\n".join([*lines, _CHOICE]))]
    for said, tool, arguments in _examples(tools):
        answer = json.dumps({"tool": tool, "arguments": dict(arguments)})
        messages += [text_message("user", said), text_message("assistant", answer)]
    return (*messages, text_message("user", question))


def _format(tools: Sequence[RoutedTool], *, may_reply: bool) -> JsonObject:
    choices = [_choice(tool.name, tool.arguments) for tool in tools]
    if may_reply:
        choices.insert(0, _choice(REPLY, ()))
    schema = {"name": "route", "strict": True, "schema": {"anyOf": choices}}
    return {"type": "json_schema", "json_schema": schema}


def _examples(tools: Sequence[RoutedTool]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Tools and small talk in turn, small talk first and last."""
    calls = [(said, tool.name, given) for tool in tools for said, given in tool.examples]
    for number in range(max(len(_SMALL_TALK), len(calls) + 1)):
        yield _SMALL_TALK[number % len(_SMALL_TALK)], REPLY, {}
        yield from calls[number : number + 1]


def _choice(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    given = {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in arguments},
        "required": list(arguments),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "arguments": given},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }
