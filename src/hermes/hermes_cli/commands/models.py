"""``hermes models``: what can answer, and where.

The list is each endpoint's own; nothing is kept between two calls.
"""

import asyncio
import dataclasses
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hermes.hermes_cli import config
from hermes.hermes_cli.commands import endpoints
from hermes.hermes_cli.commands.endpoints import Listing
from hermes.providers.local_catalogue import CATALOGUE, LABEL
from hermes.providers.local_detect import Detection
from hermes.providers.local_weights import weights_path

_SHOWN = 20


class _Models(click.Group):
    """The list itself, and ``pull``, which is loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["pull"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "pull":
            return None
        return importlib.import_module("hermes.hermes_cli.commands.models_pull").command


@click.group(cls=_Models, invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Every model of every endpoint.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--limit",
    type=click.FloatRange(0.1, 60),
    default=5.0,
    show_default=True,
    help="Seconds that an endpoint may take.",
)
@click.pass_context
def command(ctx: click.Context, everything: bool, as_json: bool, limit: float) -> None:
    """List the configured endpoints and their models; ends with 1 when the default one fails."""
    if ctx.invoked_subcommand is not None:
        return
    loaded = config.load_settings()
    listings, detection = asyncio.run(_look(loaded, endpoints.configured(loaded), limit))
    embedded = _embedded(loaded.home)
    if as_json:
        click.echo(json.dumps(_as_data(listings, detection, embedded), indent=2))
    else:
        _print(listings, detection, embedded, sys.maxsize if everything else _SHOWN)
    if any(listing.error for listing in listings if listing.role == endpoints.DEFAULT):
        sys.exit(1)


async def _look(
    loaded: config.LoadedSettings, entries: Sequence[endpoints.Configured], limit: float
) -> tuple[list[Listing], Detection]:
    return await asyncio.gather(
        endpoints.survey(entries, limit=limit), endpoints.local_servers(loaded)
    )


def _embedded(home: Path) -> list[tuple[str, str]]:
    """The models that run inside Hermes, each with its state."""
    rows: list[tuple[str, str]] = []
    for weights in CATALOGUE.values():
        here = weights_path(home, weights.name) is not None
        size = f"{weights.size / 1e9:.1f} GB"
        state = f"here, {size}" if here else f"{size} to fetch: hermes models pull {weights.name}"
        rows.append((weights.model_id, state))
    return rows


def _as_data(
    listings: Sequence[Listing], detection: Detection, embedded: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    return {
        "endpoints": [dataclasses.asdict(listing) for listing in listings],
        "local_servers": [
            {"name": server.candidate.label, "base_url": server.candidate.base_url,
             "models": server.models}
            for server in detection.servers
        ],
        "local_models": [{"id": name, "state": state} for name, state in embedded],
    }  # fmt: skip


def _print(
    listings: Sequence[Listing],
    detection: Detection,
    embedded: Sequence[tuple[str, str]],
    shown: int,
) -> None:
    if not any(listing.role == endpoints.DEFAULT for listing in listings):
        click.echo("No provider is set: a model on this computer answers.")
    for listing in listings:
        _print_listing(listing, shown)
    for server in detection.servers:
        click.echo(f"{server.candidate.label}  {server.candidate.base_url}  (found here)")
        _print_names(server.models, "", shown)
    click.echo(f"{LABEL}s inside Hermes")
    for name, state in embedded:
        click.echo(f"    {name}  ({state})")


def _print_listing(listing: Listing, shown: int) -> None:
    role = f"  [{listing.role}]" if listing.role else ""
    click.echo(f"{listing.name}  {listing.base_url}{role}")
    if listing.error:
        click.echo(f"    cannot be used: {listing.error}")
        return
    context = f", {listing.context_length} tokens of context" if listing.context_length else ""
    if listing.model and listing.model not in listing.models:
        click.echo(f"    {listing.model}  (set{context}; not in the endpoint's list)")
    _print_names(listing.models, listing.model, shown, f"set{context}")


def _print_names(names: Sequence[str], chosen: str, shown: int, mark: str = "") -> None:
    first = sorted(names, key=lambda name: name != chosen)[:shown]
    for name in first:
        click.echo(f"    {name}" + (f"  ({mark})" if name == chosen else ""))
    if len(names) > len(first):
        click.echo(f"    … and {len(names) - len(first)} more (--all)")
    if not names:
        click.echo("    no models")
