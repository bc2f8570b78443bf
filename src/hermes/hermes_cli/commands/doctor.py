"""``hermes doctor``: everything that must be in place, looked at, with the next step.

What is looked at is in ``checks``.
"""

import asyncio
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hermes import __version__
from hermes.errors import ConfigError
from hermes.hermes_cli import config
from hermes.hermes_cli.commands import checks, endpoints
from hermes.hermes_cli.commands.checks import Finding
from hermes.hermes_cli.config import LoadedSettings
from hermes.providers.local_detect import Detection
from hermes.redaction import redact

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> None:
    """Check that everything is in place; ends with 1 when something fails."""
    findings = [
        dataclasses.replace(finding, text=redact(finding.text))
        for finding in _examine(config.hermes_home())
    ]
    failed = any(finding.status == "fail" for finding in findings)
    if as_json:
        checked = [dataclasses.asdict(finding) for finding in findings]
        report = {"version": __version__, "ok": not failed, "checks": checked}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        _print(findings)
    sys.exit(1 if failed else 0)


def _examine(home: Path) -> list[Finding]:
    findings = [*checks.python(), *checks.home(home)]
    try:
        loaded = config.load_settings(home)
    except ConfigError as error:
        advice = "Mend it; nothing else can be checked before."
        problem = Finding(check="settings", status="fail", text=error.message, advice=advice)
        return [*findings, problem]
    findings += checks.settings(loaded)
    entries = endpoints.configured(loaded)
    asked, detection = asyncio.run(_ask(loaded, entries, checks.database_place(loaded)))
    needed = not any(role == endpoints.DEFAULT for role, _ in entries)
    return [*findings, *asked, checks.local_model(loaded, detection, needed=needed)]


async def _ask(
    loaded: LoadedSettings, entries: Sequence[endpoints.Configured], place: str | Path | None
) -> tuple[list[Finding], Detection]:
    port, database, listings, detection = await asyncio.gather(
        checks.port(loaded),
        checks.database(place),
        endpoints.survey(entries, limit=5.0),
        endpoints.local_servers(loaded),
    )
    return [port, database, *checks.providers(listings)], detection


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        status = click.style(f"{finding.status:<4}", fg=_COLOURS[finding.status])
        click.echo(f"{status} {finding.check}: {finding.text}")
        if finding.advice:
            click.echo(f"       -> {finding.advice}")
    counts = {status: sum(f.status == status for f in findings) for status in _COLOURS}
    click.echo(f"{counts['ok']} ok, {counts['warn']} warning(s), {counts['fail']} failure(s)")
