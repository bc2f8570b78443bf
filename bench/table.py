"""Rows of figures as a Markdown table; where the figures come from is the caller's."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: what it is, of the provider itself (``direct``), of ours and of the peer.

    ``better`` says which way is good. ``goal`` is a bound on ours, or on ours less direct when
    ``goal_over_direct``.
    """

    name: str
    unit: str
    ours: float | None
    direct: float | None = None
    peer: float | None = None
    better: Literal["less", "more"] = "less"
    goal: float | None = None
    goal_over_direct: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer ours is."""
        if not self.ours or not self.peer:
            return None
        return self.peer / self.ours if self.better == "less" else self.ours / self.peer

    @property
    def met(self) -> bool | None:
        """True when the goal is reached, None without a goal or a figure."""
        if self.goal is None or self.ours is None:
            return None
        reached = self.ours - (self.direct or 0.0) if self.goal_over_direct else self.ours
        return reached <= self.goal if self.better == "less" else reached >= self.goal


def render(rows: Iterable[Row]) -> str:
    """Return the table, with a mark at each goal."""
    lines = [
        "| figure | direct | ours | goal | peer | better than the peer by |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = (
            f"{row.name}, {row.unit}",
            number(row.direct),
            number(row.ours),
            _goal(row),
            number(row.peer),
            f"{number(row.ratio)} times" if row.ratio else "",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Return ``value`` with three digits that matter, thousands apart; "" for None."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    sign = "≤" if row.better == "less" else "≥"
    over = " over direct" if row.goal_over_direct else ""
    mark = {True: " ✓", False: " ✗", None: ""}[row.met]
    return f"{sign} {number(row.goal)}{over}{mark}"
