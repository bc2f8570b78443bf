"""Named sets of tools, as data.

Only names stand here; the tools are made by ``hermes.tools.registry``.
"""

import difflib
from collections.abc import Iterable
from types import MappingProxyType

from hermes.errors import ToolboxError

TOOLSETS = MappingProxyType(
    {
        "terminal": ("terminal", "read_result"),
        "file": ("read_file", "write_file", "patch", "search_files", "read_result"),
        "time": ("current_time",),
        "default": (
            "terminal",
            "read_file",
            "write_file",
            "patch",
            "search_files",
            "read_result",
            "current_time",
        ),
        "none": (),
    }
)
"""The tools of each set, in the order in which a model sees them."""

ALIASES = MappingProxyType(
    {
        "all": "default",
        "files": "file",
        "shell": "terminal",
        "clock": "time",
        "hermes-api-server": "default",
        "hermes-cli": "default",
        "hermes-acp": "default",
        "coding": "default",
    }
)
"""Other names of a set: short forms, and those that settings of the public agent use."""

ABSENT = frozenset(
    {
        "browser",
        "clarify",
        "code_execution",
        "computer_use",
        "cronjob",
        "delegation",
        "discord",
        "discord_admin",
        "homeassistant",
        "image_gen",
        "memory",
        "messaging",
        "moa",
        "session_search",
        "skills",
        "spotify",
        "todo",
        "tts",
        "video",
        "video_gen",
        "vision",
        "web",
        "x_search",
        "yuanbao",
    }
)
"""Sets of the public agent that are not here: allowed in settings, and empty."""


def resolve_toolset(name: str) -> list[str]:
    """Return the names of a set's tools; a tool's own name stands for itself.

    Raises:
        ToolboxError: nothing has that name; the message tells what is near (``unknown_toolset``).
    """
    name = name.strip()
    known = TOOLSETS.get(ALIASES.get(name, name))
    if known is not None:
        return list(known)
    if name in ABSENT:
        return []
    tools = dict.fromkeys(tool for members in TOOLSETS.values() for tool in members)
    if name in tools:
        return [name]
    near = difflib.get_close_matches(name[:100], [*TOOLSETS, *ALIASES, *tools], n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(TOOLSETS)}."
    raise ToolboxError(f"There is no toolset {name[:100]!r}; {hint}", code="unknown_toolset")


def resolve_toolsets(names: Iterable[str], disabled: Iterable[str] = ()) -> list[str]:
    """Return the tools of several sets, each once, without those of the disabled sets.

    Raises:
        ToolboxError: one of the names is unknown.
    """
    off = {tool for name in disabled for tool in resolve_toolset(name)}
    on = dict.fromkeys(tool for name in names for tool in resolve_toolset(name))
    return [tool for tool in on if tool not in off]


def absent_toolsets(names: Iterable[str]) -> list[str]:
    """Return those of the names that are allowed but empty here, for one warning at start."""
    return [name for name in dict.fromkeys(names) if name in ABSENT]
