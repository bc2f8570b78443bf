"""The changeable rows at the end of a terminal."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.hermes_cli.terminal.screen import Screen
from support.emulator import Emulator

_ROWS = st.lists(
    st.sampled_from(["", "one", "two", "漢字", "\x1b[1mbold\x1b[0m", "x" * 20]), max_size=8
)
_FRAMES = st.lists(st.tuples(_ROWS, _ROWS), max_size=12)


def plain(rows: list[str]) -> list[str]:
    return [row.replace("\x1b[1m", "").replace("\x1b[0m", "") for row in rows]


@settings(deadline=None)
@given(_FRAMES)
def test_the_terminal_shows_the_final_rows_and_below_them_the_last_live_ones(
    frames: list[tuple[list[str], list[str]]],
) -> None:
    screen, terminal = Screen(), Emulator(20, 6)
    said: list[str] = []
    for final, live in frames:
        terminal.write(screen.frame(final, live, width=20, height=6))
        said += final
        above, below = terminal.rows[: terminal.row], terminal.rows[terminal.row :]
        assert above == plain([*said, *live[-4:]])
        assert not any(below)


def test_rows_that_are_right_already_are_not_written_again() -> None:
    screen = Screen()
    screen.frame([], ["kept", "old"], width=20, height=6)
    frame = screen.frame(["kept"], ["new"], width=20, height=6)
    assert "kept" not in frame
    assert "new" in frame


def test_a_frame_that_changes_nothing_is_empty() -> None:
    screen = Screen()
    screen.frame([], ["row"], width=20, height=6)
    assert screen.frame([], ["row"], width=20, height=6) == ""


def test_a_long_final_row_may_wrap() -> None:
    screen, terminal = Screen(), Emulator(10, 6)
    terminal.write(screen.frame([], ["partial"], width=10, height=6))
    terminal.write(screen.frame(["x" * 25], ["next"], width=10, height=6))
    terminal.write(screen.frame(["next"], [], width=10, height=6))
    assert terminal.rows == ["x" * 10, "x" * 10, "x" * 5, "next", ""]


def test_rows_that_a_narrower_window_wrapped_are_taken_back_whole() -> None:
    screen, terminal = Screen(), Emulator(20, 10)
    terminal.write(screen.frame(["said"], ["a row of many words"], width=20, height=10))
    wrapped = Emulator(10, 10)
    wrapped.write("said\na row of many words\n")
    wrapped.write(screen.frame([], ["short"], width=10, height=10))
    assert [row for row in wrapped.rows if row] == ["said", "short"]
