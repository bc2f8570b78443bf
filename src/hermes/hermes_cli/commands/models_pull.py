"""``hermes models pull``: fetch a model that runs on this computer.

Where it comes from and how it is checked is ``providers.local_weights``'s.
"""

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import click

from hermes.hermes_cli import config
from hermes.providers.local_catalogue import CATALOGUE, DEFAULT_MODEL, Weights, find_weights
from hermes.providers.local_weights import pull, weights_path

_MEGABYTE = 1_000_000
_LINES = 10


@click.command("pull")
@click.argument("name", type=click.Choice(list(CATALOGUE)), default=DEFAULT_MODEL)
def command(name: str) -> None:
    """Fetch a model that runs on this computer; what has arrived before is not fetched again."""
    weights = find_weights(name)
    home = config.hermes_home()
    path = weights_path(home, name)
    if path is None:
        click.echo(
            f"{weights.title}: {weights.size / _MEGABYTE:.0f} MB,"
            f" licence {weights.licence} ({weights.author})."
        )
        path = _fetch(home, weights)
    click.echo(f"{weights.model_id} is ready: {path}")


def _fetch(home: Path, weights: Weights) -> Path:
    try:
        with _progress(weights.size) as progress:
            return asyncio.run(pull(home, weights.name, progress))
    except KeyboardInterrupt:
        click.echo("Stopped. What has arrived is kept; run the command again to go on.", err=True)
        raise


@contextmanager
def _progress(size: int) -> Generator[Callable[[int, int], None]]:
    """A bar on a terminal, some lines elsewhere."""
    if not sys.stdout.isatty():
        yield _lines()
        return
    from rich import progress

    columns = (
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns) as bar:
        task = bar.add_task("", total=size)
        yield lambda done, _total: bar.update(task, completed=done)


def _lines() -> Callable[[int, int], None]:
    said = -1

    def say(done: int, total: int) -> None:
        nonlocal said
        share = done * _LINES // total
        if share > said:
            said = share
            click.echo(f"{done / _MEGABYTE:.0f} of {total / _MEGABYTE:.0f} MB")

    return say
