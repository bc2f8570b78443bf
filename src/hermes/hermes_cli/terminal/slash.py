"""The commands of a conversation that begin with a slash.

They say what they did through the caller; nothing is written here.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hermes.hermes_cli.terminal.clean import one_line
from hermes.hermes_cli.terminal.conversation import Conversation
from hermes.sessions.model import Session

_LISTED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command leads to: text to show, another session entered, the end."""

    text: str = ""
    entered: bool = False
    leave: bool = False


@dataclass(frozen=True, slots=True)
class _Command:
    usage: str
    help: str
    run: Callable[[Conversation, str], Awaitable[Outcome]]


async def run(line: str, conversation: Conversation) -> Outcome | None:
    """Run the command that ``line`` names; None when it is a message that only looks like one.

    Raises:
        SessionError: the session to resume does not exist.
    """
    name, _, rest = line.partition(" ")
    command = COMMANDS.get(name)
    if command is not None:
        return await command.run(conversation, rest.strip())
    if "/" in name[1:] or "\n" in line:
        return None
    return Outcome(text=f"There is no command {one_line(name, 40)}; /help lists them.")


async def _help(conversation: Conversation, rest: str) -> Outcome:
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"{command.usage.ljust(width)}  {command.help}" for command in COMMANDS.values()]
    keys = (
        "",
        "Enter sends; Alt-Enter, or a backslash before Enter, begins a new line.",
        "While an answer comes: Ctrl-C stops it; a line typed goes in at the next tool step.",
        "Up and Ctrl-R find earlier messages. Ctrl-D leaves.",
    )
    return Outcome(text="\n".join([*lines, *keys]))


async def _new(conversation: Conversation, rest: str) -> Outcome:
    conversation.new()
    return Outcome(text="A new session; nothing of the last one is known in it.")


async def _sessions(conversation: Conversation, rest: str) -> Outcome:
    sessions = await conversation.recent(_LISTED)
    if not sessions:
        return Outcome(text="There is no session yet.")
    lines = [session_line(number, session) for number, session in enumerate(sessions, 1)]
    return Outcome(text="\n".join([*lines, "", "/resume NUMBER goes on with one."]))


async def _resume(conversation: Conversation, rest: str) -> Outcome:
    if not rest:
        return await _sessions(conversation, rest)
    if rest.isdecimal() and len(rest) < 4:
        sessions = await conversation.recent(_LISTED)
        number = int(rest)
        if not 1 <= number <= len(sessions):
            return Outcome(text=f"There is no session number {number}; /sessions lists them.")
        rest = sessions[number - 1].id
    await conversation.resume(rest)
    return Outcome(entered=True)


async def _model(conversation: Conversation, rest: str) -> Outcome:
    return Outcome(text=f"Model: {conversation.title}")


async def _quit(conversation: Conversation, rest: str) -> Outcome:
    return Outcome(leave=True)


COMMANDS: Mapping[str, _Command] = MappingProxyType(
    {
        "/help": _Command("/help", "This list.", _help),
        "/new": _Command("/new", "Begin a new session.", _new),
        "/sessions": _Command("/sessions", "List the last sessions.", _sessions),
        "/resume": _Command("/resume [NUMBER|ID|last]", "Go on with an earlier session.", _resume),
        "/model": _Command("/model", "Say which model answers.", _model),
        "/quit": _Command("/quit", "Leave.", _quit),
    }
)


def session_line(number: int, session: Session) -> str:
    """Return one line about a session for a list."""
    when = ago(time.time() - session.last_active)
    title = one_line(session.title, 40) or "(no title)"
    return f"{number:>2}  {session.id[:12]}  {when:>14}  {title}"


def ago(seconds: float) -> str:
    """Return how long ago something was, roughly."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
