"""``hermes completion``: the script that teaches a shell to complete our commands."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script, e.g. for bash: eval "$(hermes completion bash)"."""
    kind = get_completion_class(shell)
    root = context.find_root().command
    if kind is None:
        raise click.ClickException(f"No completion is known for {shell}.")
    click.echo(kind(root, {}, "hermes", "_HERMES_COMPLETE").source())
