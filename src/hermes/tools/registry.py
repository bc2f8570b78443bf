"""Every tool that ships, by name, and how it is made.

Which of them a turn gets is said by ``hermes.toolsets``.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import MappingProxyType

from hermes.errors import ToolboxError
from hermes.tools.base import Tool
from hermes.tools.clock import current_time_tool
from hermes.tools.files import patch_tool, read_file_tool, write_file_tool
from hermes.tools.results import MAX_TOTAL_BYTES, ResultStore, read_result_tool
from hermes.tools.search import search_files_tool
from hermes.tools.terminal import TerminalLimits, terminal_tool
from hermes.tools.toolbox import RESULT_CHARS, TIME_LIMIT, Toolbox
from hermes.toolsets import resolve_toolsets


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """What an operator may set about tools. ``ripgrep`` as in ``search_files_tool``."""

    terminal: TerminalLimits = field(default_factory=TerminalLimits)
    result_chars: int = RESULT_CHARS
    time_limit: float = TIME_LIMIT
    kept_total_bytes: int = MAX_TOTAL_BYTES
    search_seconds: float = 60.0
    ripgrep: str | None = None


Maker = Callable[[ToolOptions, ResultStore], Tool]

MAKERS: MappingProxyType[str, Maker] = MappingProxyType(
    {
        "terminal": lambda options, store: terminal_tool(store, options.terminal),
        "read_file": lambda _options, _store: read_file_tool(),
        "write_file": lambda _options, _store: write_file_tool(),
        "patch": lambda _options, _store: patch_tool(),
        "search_files": lambda options, _store: search_files_tool(
            ripgrep=options.ripgrep, time_limit=options.search_seconds
        ),
        "read_result": lambda _options, store: read_result_tool(store),
        "current_time": lambda _options, _store: current_time_tool(),
    }
)
"""How each tool is made."""


def build_toolbox(
    names: Iterable[str] = ("default",),
    *,
    disabled: Iterable[str] = (),
    options: ToolOptions | None = None,
    extra: Iterable[Tool] = (),
) -> Toolbox:
    """Return a toolbox with the tools of the named sets (or tools), then the extra ones.

    It touches neither disk nor network; one toolbox serves any number of turns.

    Raises:
        ToolboxError: a name is unknown, or two tools have one name.
    """
    chosen = options or ToolOptions()
    store = ResultStore(chosen.kept_total_bytes)
    tools = [_make(name, chosen, store) for name in resolve_toolsets(names, disabled)]
    # A command ends by its own limit; the toolbox' limit must not cut that short.
    slack = chosen.terminal.grace + 30.0
    limits = {"terminal": chosen.terminal.max_timeout + slack}
    return Toolbox(
        [*tools, *extra],
        results=store,
        result_chars=chosen.result_chars,
        time_limit=chosen.time_limit,
        time_limits=limits,
    )


def _make(name: str, options: ToolOptions, store: ResultStore) -> Tool:
    maker = MAKERS.get(name)
    if maker is None:
        near = difflib.get_close_matches(name, MAKERS, n=1, cutoff=0.0)
        raise ToolboxError(f"There is no tool {name!r}; nearest: {near[0]}.", code="unknown_tool")
    return maker(options, store)
