"""The list of breaches that stay, each with its reason."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from house_rules.source import ROOT, Finding

PATH = ROOT / "tests" / "house_rules_exceptions.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """One exception, for one rule at one place."""

    rule: str
    where: str
    reason: str


def read_exceptions() -> tuple[Allowed, ...]:
    """Return the listed exceptions; an entry with a key too many or too few is an error."""
    entries = tomllib.loads(PATH.read_text(encoding="utf-8")).get("exception", [])
    return tuple(Allowed(**entry) for entry in entries)


def not_allowed(findings: Iterable[Finding], allowed: Iterable[Allowed]) -> list[Finding]:
    """Return the findings that no exception covers."""
    places = {(entry.rule, entry.where) for entry in allowed}
    return [finding for finding in findings if (finding.rule, finding.where) not in places]


def not_needed(findings: Iterable[Finding], allowed: Iterable[Allowed]) -> list[Allowed]:
    """Return the exceptions that cover nothing."""
    places = {(finding.rule, finding.where) for finding in findings}
    return [entry for entry in allowed if (entry.rule, entry.where) not in places]
