"""Compare the branch coverage that the tests reached with the floor that it must not fall below.

The floor is kept in ``tests/coverage_floor.txt``. It is never lowered; ``--raise`` lifts it to what
was reached, less a margin for branches that only a race takes.
"""

import argparse
import math
import sys
from pathlib import Path

FLOOR = Path(__file__).resolve().parents[1] / "tests" / "coverage_floor.txt"
MARGIN = 0.4
NUDGE = 1.0


def raised(floor: float, reached: float) -> float:
    """Return the floor that ``reached`` justifies, in steps of 0.1; never below ``floor``."""
    return max(floor, math.floor(round((reached - MARGIN) * 10, 6)) / 10)


def verdict(floor: float, reached: float) -> str:
    """Say what is wrong with ``reached``, or "" when nothing is."""
    if reached < floor:
        return f"coverage fell to {reached} %; the floor is {floor} %: test what you added"
    return ""


def main() -> int:
    """Return 0 when the floor holds, 1 when it does not."""
    parser = argparse.ArgumentParser(description="Compare coverage with its floor.")
    parser.add_argument("reached", type=float, help="percent reached")
    parser.add_argument("--raise", dest="lift", action="store_true", help="raise the floor")
    options = parser.parse_args()
    floor = float(FLOOR.read_text(encoding="utf-8"))
    wrong = verdict(floor, options.reached)
    if wrong:
        print(wrong, file=sys.stderr)
        return 1
    possible = raised(floor, options.reached)
    if options.lift:
        FLOOR.write_text(f"{possible}\n", encoding="utf-8")
        print(f"coverage floor: {possible} % (was {floor} %)")
    elif possible >= floor + NUDGE:
        print(f"coverage floor is {floor} %, {possible} % is possible: scripts/check --raise-floor")
    return 0


if __name__ == "__main__":
    sys.exit(main())
