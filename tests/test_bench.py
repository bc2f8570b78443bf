"""The table of measurements says what was measured."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that draws the table; ``bench`` is a folder of scripts, not a package."""
    monkeypatch.syspath_prepend(str(BENCH))
    import table

    return table


def test_a_ratio_tells_how_many_times_better_ours_is(table: ModuleType) -> None:
    time = table.Row(name="wait", unit="ms", ours=5.0, peer=20.0)
    rate = table.Row(name="turns", unit="1/s", ours=30.0, peer=10.0, better="more")

    assert (time.ratio, rate.ratio) == (4.0, 3.0)
    assert table.Row(name="own", unit="ms", ours=5.0).ratio is None


@pytest.mark.parametrize(
    ("more", "met"),
    [
        ({"ours": 5.0, "goal": 5.0}, True),
        ({"ours": 5.1, "goal": 5.0}, False),
        ({"ours": 9.0, "direct": 5.0, "goal": 5.0, "goal_over_direct": True}, True),
        ({"ours": 9.0, "goal": 10.0, "better": "more"}, False),
        ({"ours": 9.0}, None),
        ({"ours": None, "goal": 5.0}, None),
    ],
)
def test_a_goal_is_met_or_missed_or_absent(
    table: ModuleType, more: dict[str, object], met: bool | None
) -> None:
    assert table.Row(name="x", unit="ms", **more).met is met


def test_the_table_marks_goals_and_leaves_blank_what_was_not_measured(table: ModuleType) -> None:
    rows = [
        table.Row(name="start", unit="s", ours=0.514, peer=0.9, goal=0.6),
        table.Row(name="turns", unit="1/s", ours=1234.5, direct=56789.0, better="more", goal=2000),
    ]

    lines = table.render(rows).splitlines()[2:]

    assert lines == [
        "| start, s |  | 0.51 | ≤ 0.60 ✓ | 0.90 | 1.75 times |",
        "| turns, 1/s | 56,789 | 1,234 | ≥ 2,000 ✗ |  |  |",
    ]


def test_without_the_kit_it_says_what_is_missing(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(BENCH / "run.py"), "--kit", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode == 2
    assert "HERMES_BENCH_KIT" in ended.stderr
