"""Which toolsets a surface offers, by the settings.

What is in a toolset is ``hermes.toolsets``'. The names with a leading underscore are fixed ones
that embedders may replace; call them through this module.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from hermes import toolsets
from hermes.errors import ToolboxError

__all__ = [
    "_get_effective_configurable_toolsets",
    "_get_platform_tools",
    "_toolset_has_keys",
    "toolset_warnings",
]

_DEFAULT = "default"

_CONFIGURABLE = (
    ("terminal", "Terminal", "Run commands on the server"),
    ("file", "Files", "Read, write, change and search files on the server"),
    ("time", "Clock", "Tell the date and the time"),
)
"""Sets that can be chosen one by one: name, label, description."""


def _get_effective_configurable_toolsets() -> list[tuple[str, str, str]]:
    return list(_CONFIGURABLE)


def _get_platform_tools(settings: Mapping[str, Any], platform: str) -> set[str]:
    """Return the toolsets (and single tools) of a platform; ``settings`` is ``load_config``'s.

    Names that do not exist here are left out: ``toolset_warnings`` has named them.
    """
    chosen = _chosen(settings).get(platform)
    names = _names((_DEFAULT,) if chosen is None else chosen)
    off = _names(_section(settings, "agent").get("disabled_toolsets") or ())
    return _without(_expanded(names), _expanded(off))


def _toolset_has_keys(name: str, settings: Mapping[str, Any] | None = None) -> bool:
    """Whether everything that a toolset needs from the operator is there; none needs anything."""
    del settings
    return _exists(name)


def toolset_warnings(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each chosen or disabled toolset that does not exist."""
    places = {f"platform_toolsets.{name}": value for name, value in _chosen(settings).items()}
    places["agent.disabled_toolsets"] = _section(settings, "agent").get("disabled_toolsets") or ()
    for place, value in places.items():
        for name in _names(value):
            try:
                toolsets.resolve_toolset(name)
            except ToolboxError as error:
                yield f"config.yaml: {place}: {error}"


def _chosen(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return _section(settings, "platform_toolsets")


def _section(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = settings.get(name)
    return cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else {}


def _names(value: Any) -> list[str]:
    items = value.split(",") if isinstance(value, str) else list(value)
    return [name for item in items if (name := str(item).strip())]


def _exists(name: str) -> bool:
    try:
        toolsets.resolve_toolset(name)
    except ToolboxError:
        return False
    return True


def _expanded(names: list[str]) -> set[str]:
    """Return the configurable sets and single tools that the names stand for."""
    result: set[str] = set()
    for name in names:
        if not _exists(name):
            continue
        usual = toolsets.ALIASES.get(name, name)
        if usual == _DEFAULT:
            result.update(entry[0] for entry in _CONFIGURABLE)
        elif toolsets.resolve_toolset(usual):
            result.add(usual)
    return result


def _without(chosen: set[str], off: set[str]) -> set[str]:
    """Take sets and single tools out; a set that loses a tool is replaced by those it keeps."""
    sets = {entry[0] for entry in _CONFIGURABLE}
    tools_off = off - sets
    result: set[str] = set()
    for name in chosen - off:
        members = toolsets.resolve_toolset(name)
        kept = [tool for tool in members if tool not in tools_off]
        result.update({name} if len(kept) == len(members) else kept)
    return result
