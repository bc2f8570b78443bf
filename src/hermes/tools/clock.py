"""The tool that tells the time.

It keeps no clock of its own and schedules nothing.
"""

import difflib
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hermes.messages import JsonObject, ToolSpec
from hermes.tools.base import FunctionTool, ToolContext, ToolFailure
from hermes.tools.blocking import run_blocking


def _utc_now() -> datetime:
    return datetime.now(UTC)


def current_time_tool(now: Callable[[], datetime] = _utc_now) -> FunctionTool:
    """Return the tool; ``now`` gives an aware time."""

    async def current_time(arguments: JsonObject, _context: ToolContext) -> str:
        name: str = arguments.get("timezone", "")
        return await run_blocking(_tell, now(), name)

    return FunctionTool(spec=_SPEC, function=current_time)


_SPEC = ToolSpec(
    name="current_time",
    description="The current date, time and weekday.",
    parameters={
        "type": "object",
        "properties": {
            "timezone": {
                "type": "string",
                "description": "e.g. Europe/Berlin or UTC (default: the server's)",
            }
        },
        "additionalProperties": False,
    },
)


def _tell(now: datetime, name: str) -> str:
    local = now.astimezone(_zone(name) if name.strip() else None)
    zone = local.tzinfo.key if isinstance(local.tzinfo, ZoneInfo) else local.tzname()
    return f"{local.isoformat(timespec='seconds')} ({zone}), {local.strftime('%A')}"


def _zone(name: str) -> tzinfo:
    name = name.strip()
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = {zone.lower(): zone for zone in available_timezones()}
    wanted = name.lower().replace(" ", "_")[:100]
    if wanted in known:
        return ZoneInfo(known[wanted])
    cities = {zone.rpartition("/")[2]: zone for zone in known}
    near = difflib.get_close_matches(wanted, [*known, *cities], n=3, cutoff=0.6)
    names = dict.fromkeys(known[cities.get(zone, zone)] for zone in near)
    hint = f" Did you mean {', '.join(names)}?" if names else " Use a name like Europe/Berlin."
    raise ToolFailure(f"There is no time zone {name[:100]!r}.{hint}")
