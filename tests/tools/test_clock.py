from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from hermes.messages import ToolResult
from hermes.tools.base import ToolContext
from hermes.tools.clock import current_time_tool

Run = Callable[..., Awaitable[ToolResult]]
_TOOL = current_time_tool(lambda: datetime(2026, 7, 31, 23, 30, tzinfo=UTC))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2026-07-31T23:30:00+00:00 (UTC), Friday"),
        ("Europe/Berlin", "2026-08-01T01:30:00+02:00 (Europe/Berlin), Saturday"),
        ("europe/berlin", "2026-08-01T01:30:00+02:00 (Europe/Berlin), Saturday"),
        ("America/New York", "2026-07-31T19:30:00-04:00 (America/New_York), Friday"),
        ("Asia/Kolkata", "2026-08-01T05:00:00+05:30 (Asia/Kolkata), Saturday"),
    ],
)
async def test_the_time_is_told_in_a_zone(zone: str, text: str, context: ToolContext) -> None:
    result = await _TOOL({"timezone": zone}, context)

    assert result.text == text


@pytest.mark.asyncio
async def test_the_time_of_the_server_is_the_default(run: Run) -> None:
    result = await run("current_time")

    told = datetime.fromisoformat(result.text.partition(" ")[0])
    assert abs((datetime.now(UTC) - told).total_seconds()) < 60


@pytest.mark.asyncio
@pytest.mark.parametrize("zone", ["Berlin", "Europe/Berln", "../../etc/passwd", "\0", "x" * 5000])
async def test_an_unknown_zone_is_an_error(zone: str, context: ToolContext) -> None:
    result = await _TOOL({"timezone": zone}, context)

    assert result.is_error
    assert "There is no time zone" in result.text
    assert "Europe/Berlin" in result.text
    assert len(result.text) < 300
