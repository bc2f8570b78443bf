"""The rule that every module has a layer: what import-linter does not know it does not check."""

import configparser
from collections.abc import Collection, Iterator
from pathlib import Path

from house_rules.source import Finding, Module

UNLAYERED = frozenset({"hermes", "hermes.hermes_cli", "hermes.gateway", "hermes.gateway.platforms"})
"""Packages that span layers; ``bare_package`` keeps them empty."""


def layered_names(contracts: Path) -> frozenset[str]:
    """Return the modules that the contract ``layers`` of an import-linter file names."""
    parser = configparser.ConfigParser()
    parser.read(contracts, encoding="utf-8")
    text = parser["importlinter:contract:layers"]["layers"]
    words = text.replace("|", " ").replace(":", " ").split()
    return frozenset(word.strip("()") for word in words)


def has_layer(module: Module, names: Collection[str]) -> Iterator[Finding]:
    """Every module is in a layer, itself or through its package."""
    if module.name in UNLAYERED or module.within(*names):
        return
    yield Finding(
        rule="has-layer", where=module.path, detail="is in no layer; add it to .importlinter"
    )
