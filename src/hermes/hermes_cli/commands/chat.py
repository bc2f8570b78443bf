"""``hermes chat``: one question from a shell, or a conversation at a terminal.

How an answer looks is ``terminal``'s; how it comes about is the agent's.
"""

import asyncio
import contextlib
import logging
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hermes.errors import ConfigError, HermesError, RequestError
from hermes.hermes_cli import config, event_loop
from hermes.hermes_cli.config import LoadedSettings
from hermes.hermes_cli.terminal import wording
from hermes.hermes_cli.terminal.output import Output

if TYPE_CHECKING:
    from hermes.hermes_cli.terminal.conversation import Conversation
    from hermes.hermes_cli.terminal.input import Input
    from hermes.hermes_cli.terminal.styled import StyledView
    from hermes.hermes_cli.terminal.view import TalkView, View

_STDIN, _STDOUT, _STDERR = 0, 1, 2

_MAX_INPUT = 8 * 2**20
"""Bytes taken from standard input; more would fit no model."""

_PATIENCE = 2.0
"""Seconds of silence on standard input after which somebody at a terminal is told of the wait."""

_EXIT_FAILED = 1
_EXIT_CONFIG = 2
_EXIT_INTERRUPTED = 130
_EXIT_TERMINATED = 143
_EXIT_CODES = {
    "completed": 0,
    "truncated": 3,
    "failed": _EXIT_FAILED,
    "cancelled": _EXIT_INTERRUPTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """What the command line asks for."""

    query: str | None
    session: str | None
    model: str | None
    json: bool
    plain: bool


@click.command()
@click.option("-q", "--query", metavar="TEXT", help="Ask TEXT, print the answer and leave.")
@click.option(
    "-s", "--session", metavar="ID|last", help="Go on with a session: its id, or the last one."
)
@click.option("--new", is_flag=True, help="Begin a new session (the default).")
@click.option("-m", "--model", metavar="NAME", help="Ask this model instead of the configured one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per event.")
@click.option("--plain", is_flag=True, help="No colour, no drawing: text line by line.")
@click.option("-v", "--verbose", count=True, help="Log to standard error; twice for everything.")
@click.pass_context
def command(  # noqa: PLR0913 - one parameter an option
    context: click.Context,
    *,
    query: str | None,
    session: str | None,
    new: bool,
    model: str | None,
    as_json: bool,
    plain: bool,
    verbose: int,
) -> int:
    """Talk with the agent.

    With -q, or when something is piped in, one question is answered; both together ask the
    question about what is piped in. Otherwise a conversation begins.
    """
    if new and session is not None:
        raise click.UsageError("--new and --session exclude each other.")
    options = ChatOptions(query=query, session=session, model=model, json=as_json, plain=plain)
    try:
        return _chat(options, verbose)
    except BrokenPipeError:
        # Whoever read the answer has what they wanted; the turn was stopped and is stored.
        return 0
    except asyncio.CancelledError:
        return _EXIT_TERMINATED
    except HermesError as error:
        if context.find_root().params.get("debug"):
            raise
        _report(error, options)
        return _EXIT_CONFIG if isinstance(error, ConfigError) else _EXIT_FAILED


def _chat(options: ChatOptions, verbose: int) -> int:
    if options.query is None and os.isatty(_STDIN):
        if options.json or not os.isatty(_STDOUT):
            raise click.UsageError("Give a question with -q, or pipe one in.")
        question = None
    else:
        question = _question(options.query)
    loaded = config.load_settings()
    _log(loaded, verbose)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if question is None:
        return event_loop.run(_converse(loaded, options))
    return event_loop.run(_answer(loaded, options, question))


def _report(error: HermesError, options: ChatOptions) -> None:
    if options.json:
        from hermes.hermes_cli.terminal import jsonl

        with contextlib.suppress(BrokenPipeError):
            click.echo(jsonl.line({"type": "error", "error": jsonl.error_object(error)}), nl=False)
    click.echo(f"Error: {wording.error(error)}", err=True)


def _log(loaded: LoadedSettings, verbose: int) -> None:
    """Log to a file, so that the screen is the conversation's; with -v to standard error."""
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    if verbose:
        level = logging.INFO if verbose == 1 else logging.DEBUG
        logging.basicConfig(level=level, stream=sys.stderr, format=form)
        return
    from logging.handlers import RotatingFileHandler

    folder = loaded.home / "logs"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = RotatingFileHandler(
        folder / "chat.log", maxBytes=1_000_000, backupCount=1, encoding="utf-8", delay=True
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format=form)


def _question(query: str | None) -> str:
    piped = "" if os.isatty(_STDIN) else _piped()
    if not (query or "").strip():
        if not piped.strip():
            raise click.UsageError("There is no question: give one with -q, or pipe one in.")
        return piped.strip()
    if not piped.strip():
        return (query or "").strip()
    return f"{query}\n\n<input>\n{piped.rstrip()}\n</input>"


def _piped() -> str:
    """Return what is piped in.

    Raises:
        RequestError: it is not text, or too much.
    """
    if os.isatty(_STDERR) and not select.select([_STDIN], [], [], _PATIENCE)[0]:
        click.echo("Waiting for standard input to end (or start with < /dev/null).", err=True)
    data = b""
    while piece := os.read(_STDIN, 2**16):
        data += piece
        if len(data) > _MAX_INPUT:
            raise RequestError(f"Standard input is longer than {_MAX_INPUT // 2**20} MiB.")
    if b"\0" in data[:8192]:
        raise RequestError("Standard input is not text.")
    return data.decode("utf-8", "replace")


@asynccontextmanager
async def _conversation(
    loaded: LoadedSettings, options: ChatOptions, view: "View"
) -> "AsyncGenerator[Conversation]":
    """Open what turns need, and close it; SIGTERM and SIGHUP stop the turn first."""
    from hermes.gateway import run as gateway_run
    from hermes.hermes_cli.terminal.conversation import Conversation

    conversation: Conversation | None = None

    def say(line: str) -> None:
        view.remark(line)
        if conversation is not None:
            conversation.nudge()

    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    keywords = gateway_run.agent_keywords(loaded)
    if options.model:
        keywords["model"] = options.model
    runtime = await gateway_run.build_runtime(loaded, say=say)
    try:
        conversation = Conversation(runtime, keywords)
        if options.session is not None:
            await conversation.resume(options.session)
        yield conversation
    finally:
        await runtime.aclose()


async def _answer(loaded: LoadedSettings, options: ChatOptions, question: str) -> int:
    """Answer one question; return the program's exit code."""
    from hermes.agent.cancel import TurnControl

    view = _one_shot_view(options)
    async with _conversation(loaded, options, view) as conversation:
        control = TurnControl()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, control.cancel)
        try:
            result = await conversation.turn(question, view, control)
        finally:
            await view.close()
    return _EXIT_CODES[result.status]


def _one_shot_view(options: ChatOptions) -> "View":
    answer, notices = Output(_STDOUT), Output(_STDERR)
    if options.json:
        from hermes.hermes_cli.terminal.jsonl import JsonView

        return JsonView(answer, notices)
    if not options.plain and answer.is_terminal and _can_draw():
        return _styled(answer, notices, interactive=False)
    from hermes.hermes_cli.terminal.plain import PlainView

    return PlainView(answer, notices)


def _can_draw() -> bool:
    """Whether the terminal can move its cursor."""
    return config.process_environment().get("TERM", "dumb") not in ("", "dumb", "unknown")


def _styled(answer: Output, notices: Output, *, interactive: bool) -> "StyledView":
    from hermes.hermes_cli.terminal.markdown import terminal_console
    from hermes.hermes_cli.terminal.styled import StyledView

    return StyledView(answer, notices, terminal_console(), interactive=interactive)


async def _converse(loaded: LoadedSettings, options: ChatOptions) -> int:
    """Hold a conversation until the user leaves."""
    from hermes.hermes_cli.terminal.talk import Talk

    answer = Output(_STDOUT)
    drawing = (
        None if options.plain or not _can_draw() else _styled(answer, answer, interactive=True)
    )
    view = drawing or _plain(answer)
    async with _conversation(loaded, options, view) as conversation:
        prompt = _line_prompt(answer) if drawing is None else _editor(conversation, loaded)
        typing = drawing and drawing.activity
        talk = Talk(conversation, view, prompt, typing=typing, keyboard=_STDIN)
        if options.session is None:
            await view.notice(f"Hermes · {conversation.title}. /help lists the commands.")
        else:
            await talk.show_session()
        try:
            await talk.run()
        finally:
            await view.close()
        if conversation.turns:
            await view.notice(f"Go on with: hermes chat --session {conversation.session_id}")
    return 0


def _plain(output: Output) -> "TalkView":
    from hermes.hermes_cli.terminal.plain import PlainView

    return PlainView(output, output)


def _line_prompt(output: Output) -> "Input":
    from hermes.hermes_cli.terminal.input import LineInput

    return LineInput(_STDIN, output)


def _editor(conversation: "Conversation", loaded: LoadedSettings) -> "Input":
    from hermes.hermes_cli.terminal.prompt import Editor
    from hermes.hermes_cli.terminal.slash import COMMANDS

    return Editor(
        loaded.home / "chat_history", status=lambda: conversation.status, commands=COMMANDS
    )
