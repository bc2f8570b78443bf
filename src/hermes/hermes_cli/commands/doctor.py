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
from hermes.redaction import redact

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> None:
    """Check that everything is in place; ends with 1 when something fails."""
    findings = [
        dataclasses.replace(finding, text=redact(finding.text))
        for finding in asyncio.run(_examine(config.hermes_home()))
    ]
    failed = any(finding.status == "fail" for finding in findings)
    if as_json:
        checked = [dataclasses.asdict(finding) for finding in findings]
        report = {"version": __version__, "ok": not failed, "checks": checked}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        _print(findings)
    sys.exit(1 if failed else 0)


async def _examine(home: Path) -> list[Finding]:
    findings = [*checks.python(), *await asyncio.to_thread(lambda: list(checks.home(home)))]
    try:
        loaded = await asyncio.to_thread(config.load_settings, home)
    except ConfigError as error:
        advice = "Mend it; nothing else can be checked before."
        findings.append(Finding(check="settings", status="fail", text=error.message, advice=advice))
        return findings
    findings += checks.settings(loaded)
    port, database, listings, detection = await asyncio.gather(
        checks.port(loaded),
        checks.database(loaded),
        endpoints.survey(loaded, limit=5.0),
        endpoints.local_servers(loaded),
    )
    findings += [port, database, *checks.providers(listings)]
    needed = not any(listing.role == endpoints.DEFAULT for listing in listings)
    local = await asyncio.to_thread(checks.local_model, loaded, detection, needed=needed)
    return [*findings, local]


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        status = click.style(f"{finding.status:<4}", fg=_COLOURS[finding.status])
        click.echo(f"{status} {finding.check}: {finding.text}")
        if finding.advice:
            click.echo(f"       -> {finding.advice}")
    counts = {status: sum(f.status == status for f in findings) for status in _COLOURS}
    click.echo(f"{counts['ok']} ok, {counts['warn']} warning(s), {counts['fail']} failure(s)")
