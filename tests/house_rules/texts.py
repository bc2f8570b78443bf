"""Rules on the text of every project file."""

import re
from collections.abc import Iterator

from house_rules.source import Finding

# Put together here so that this file does not break its own rule.
_REGISTRIES = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("yarnpkg", "com"),
    ("crates", "io"),
    ("rubygems", "org"),
    ("anaconda", "org"),
    ("golang", "org"),
    ("debian", "org"),
)
_REGISTRY = re.compile(
    r"\b(?:" + "|".join(rf"{name}\.{top}" for name, top in _REGISTRIES) + r")\b", re.IGNORECASE
)
_PATH = re.compile(r"(?:^|[\s\"'`(=:])(/(?:work|root|home/\w+|Users/\w+)/[\w.-]+|\.\./shared\b)")


def registry_host(path: str, text: str) -> Iterator[Finding]:
    """Which registry packages come from is the installer's setting, not the project's."""
    for number, line in enumerate(text.splitlines(), 1):
        found = _REGISTRY.search(line)
        if found:
            yield Finding(
                rule="registry-host", where=path, detail=f"line {number} names {found.group()}"
            )


def workplace_path(path: str, text: str) -> Iterator[Finding]:
    """Nothing depends on one person's machine."""
    for number, line in enumerate(text.splitlines(), 1):
        found = _PATH.search(line)
        if found:
            yield Finding(
                rule="workplace-path", where=path, detail=f"line {number} names {found.group(1)}"
            )
