"""Which tools a surface offers."""

from collections.abc import Mapping
from typing import Any, cast

from hermes.toolsets import resolve_toolset

_DEFAULT = "default"


def _get_platform_tools(settings: Mapping[str, Any], platform: str) -> set[str]:
    """Return the names of the toolsets of a platform: what is set for it, else the default.

    Raises:
        ToolboxError: a name is not known; the message names the nearest one.
    """
    chosen = cast("Mapping[str, Any]", settings.get("platform_toolsets") or {}).get(platform)
    names = [chosen] if isinstance(chosen, str) else list(chosen or (_DEFAULT,))
    for name in names:
        resolve_toolset(name)
    return set(names)
