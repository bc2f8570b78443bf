"""``hermes completion``: the script that lets a shell complete commands, options and keys.

Where the script goes is the user's choice; the help says how.
"""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    r"""Print the completion script of SHELL.

    \b
    bash:  echo 'eval "$(hermes completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(hermes completion zsh)"' >> ~/.zshrc
    fish:  hermes completion fish > ~/.config/fish/completions/hermes.fish
    """
    from hermes.hermes_cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"No completion is known for {shell}.")
    click.echo(kind(cli, {}, "hermes", "_HERMES_COMPLETE").source())
