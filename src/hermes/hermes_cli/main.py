"""The ``hermes`` program: its commands, its global options, and how it ends.

A command's code is loaded when it is asked for, so that ``--help`` and ``--version`` are quick.
"""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hermes import __version__
from hermes.errors import ConfigError, HermesError, TurnCancelled

_COMMANDS = {
    "chat": "Talk to the agent in the terminal.",
    "completion": "Print the completion script of a shell.",
    "config": "Show and change the settings.",
    "doctor": "Check that everything is in place.",
    "models": "List the models that can be used.",
    "serve": "Serve the agent to OpenAI clients over HTTP.",
}
"""Every command with its line in the help; the module of the same name holds ``command``."""

_INTERRUPTED = 130


class _Commands(click.Group):
    """The commands, loaded one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"hermes.hermes_cli.commands.{cmd_name}")
        gc.enable()
        return module.command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name]) for name in self.list_commands(ctx)])


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of settings and state (default: HERMES_HOME, else ~/.hermes).",
)
@click.option("-p", "--profile", help="Use a profile: a home folder under profiles/.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, "-V", "--version", message="hermes %(version)s")
def cli(home: Path | None, profile: str | None, debug: bool) -> None:
    """Hermes: a self-hosted agent server for every OpenAI client."""
    _prepare_log(debug=debug)
    if home is None and profile is None:
        return
    from hermes.hermes_cli import config, profiles

    place = config.hermes_home() if home is None else home
    config.set_home(place if profile is None else profiles.profile_home(place, profile))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    0: done; 1: failed; 2: wrong usage or settings; 130: interrupted. An error is one line on
    stderr, with a traceback only under ``--debug``.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _ended(given)
    except HermesError as error:
        code = _report(error)
    except KeyboardInterrupt:
        code = _interrupted()
    except SystemExit as end:  # click ends so when the reader of a pipe has gone
        code = end.code if isinstance(end.code, int) else 1
    except Exception as error:
        import logging

        logging.getLogger(__name__).exception("unexpected error")
        _say(f"internal error ({type(error).__name__}); 'hermes --debug' shows the details.")
        code = 1
    return _flushed(code)


def _prepare_log(*, debug: bool) -> None:
    """Commands say themselves what to log where; without that, only ``--debug`` shows the log."""
    import logging

    if debug:
        logging.basicConfig(level=logging.DEBUG)
    else:
        logging.getLogger("hermes").addHandler(logging.NullHandler())


def _ended(arguments: Sequence[str]) -> int:
    try:
        result = cli.main(list(arguments), prog_name="hermes", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _interrupted()
        _say("stopped.")
        return 1
    return result if isinstance(result, int) else 0


def _report(error: HermesError) -> int:
    import logging

    from hermes.redaction import redact

    logging.getLogger(__name__).debug(error.code, exc_info=error)
    if isinstance(error, TurnCancelled):
        return _interrupted()
    _say(redact(error.message))
    return 2 if isinstance(error, ConfigError) else 1


def _interrupted() -> int:
    click.echo(err=True)
    return _INTERRUPTED


def _say(line: str) -> None:
    click.echo(f"hermes: {line}", err=True)


def _flushed(code: int) -> int:
    """Write out what is left; a reader that has gone has what it wanted."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the exit flushes again
    return code
