"""The ``hermes`` program: finds the command, loads only its module, and says plainly what failed.

What a command does is in ``commands``, one module each.
"""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click

from hermes import __version__
from hermes.errors import ConfigError, HermesError
from hermes.hermes_cli import config

_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "chat": "Talk with the agent in the terminal, or ask one question.",
        "completion": "Print the shell's completion script.",
        "config": "Show, check and change the settings.",
        "doctor": "Find what is wrong with this installation.",
        "models": "List models, and fetch the local one.",
        "serve": "Serve the agent to OpenAI clients over HTTP.",
    }
)
"""Each command's module and its line in the help, so that the help loads none of them."""

_INTERRUPTED = 130


class _LazyGroup(click.Group):
    """A group whose commands are modules that are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"hermes.hermes_cli.commands.{cmd_name}")
        return module.command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="hermes")
@click.option(
    "--home",
    metavar="FOLDER",
    help="Folder of settings and state (default ~/.hermes).",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def program(home: str | None, *, debug: bool) -> None:
    """Hermes: an agent on your own machine, for every OpenAI client and the terminal."""
    del debug
    if home:
        config.set_home(Path(home))


def run(arguments: Sequence[str]) -> int:
    """Run the program; return its exit code: 0, 1 for a failure, 2 for wrong use."""
    try:
        result = program.main(list(arguments), prog_name="hermes", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except HermesError as error:
        if "--debug" in arguments:
            raise
        click.echo(f"Error: {error.message}", err=True)
        return 2 if isinstance(error, ConfigError) else 1
    except BrokenPipeError:
        # The reader has what it wanted; nothing more can be written, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        result = 0
    return result if isinstance(result, int) else 0
