"""Turns drawn on a terminal, event by event."""

import asyncio
import io
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from hermes.events import (
    ReasoningDelta,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEvent,
    TurnFinished,
    TurnResult,
    TurnStarted,
)
from hermes.hermes_cli.terminal.output import Output
from hermes.hermes_cli.terminal.styled import StyledView
from hermes.messages import ToolCall, ToolResult, Usage
from support.emulator import Emulator

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_CALL = ToolCall(id="c", name="terminal", arguments="{}")
_DONE = TurnFinished(
    result=TurnResult(status="completed", text="", messages=(), usage=Usage(), model="m")
)
_DOCUMENT = """# Title

Words with **weight**, `code` and 漢字 that go on until they have to wrap somewhere.

- first
- second
  - inner

1. one

2. two
```python
def f():
    return "a line of code that is longer than the window is wide"
```
| a | 漢字 |
|---|:--:|
| 1 | two |

> said
> again

***

The end 🎉 <b>kept</b>."""


class Screen(Output):
    """A terminal that is not there."""

    def __init__(self, terminal: Emulator) -> None:
        super().__init__(1)
        self.is_terminal = True
        self.terminal = terminal

    def window(self) -> tuple[int, int]:
        return (self.terminal.width, self.terminal.height)

    async def write(self, text: str) -> None:
        self.terminal.write(text)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def view(height: int = 12) -> tuple[StyledView, Emulator, Clock]:
    terminal, clock = Emulator(40, height), Clock()
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None)
    screen = Screen(terminal)
    return StyledView(screen, screen, console, clock=clock), terminal, clock


def shown(terminal: Emulator) -> list[str]:
    return terminal.rows[: terminal.row]


async def drawn(pieces: list[str], times: list[float], height: int = 12) -> list[str]:
    drawing, terminal, clock = view(height)
    await drawing.show([TurnStarted(turn_id="t", session_id="s"), StepStarted(number=1)])
    for piece, seconds in zip(pieces, times, strict=True):
        await drawing.show([TextDelta(piece)])
        clock.now += seconds
    await drawing.show([_DONE])
    await drawing.close()
    return shown(terminal)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_split_in_words_and_time_leaves_the_same_screen(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(_DOCUMENT) - 1), max_size=60)))
    bounds = [0, *cuts, len(_DOCUMENT)]
    pieces = [_DOCUMENT[a:b] for a, b in itertools.pairwise(bounds)]
    times = data.draw(
        st.lists(st.sampled_from([0.0, 0.01, 1.0]), min_size=len(pieces), max_size=len(pieces))
    )
    height = data.draw(st.sampled_from([4, 12, 60]))
    whole = asyncio.run(drawn([_DOCUMENT], [0.0], height))
    assert asyncio.run(drawn(pieces, times, height)) == whole
    assert whole[0] == "# Title"
    assert whole[-1] == "The end 🎉 <b>kept</b>."


@pytest.mark.asyncio
async def test_words_of_one_frame_are_drawn_together() -> None:
    drawing, terminal, clock = view()
    await drawing.show([TextDelta("one")])
    await drawing.show([TextDelta(" two")])
    assert shown(terminal) == ["one"]
    assert drawing.tick is not None
    assert 0 < drawing.tick <= 1 / 30
    clock.now += drawing.tick
    await drawing.beat()
    assert shown(terminal) == ["one two"]
    assert drawing.tick is None


@pytest.mark.asyncio
async def test_text_tools_and_text_stand_apart() -> None:
    drawing, terminal, clock = view()
    events: list[TurnEvent] = [
        TextDelta("I look."),
        ToolStarted(call=_CALL, arguments={"command": "ls"}),
    ]
    await drawing.show(events)
    clock.now = 2.5
    await drawing.beat()
    assert shown(terminal)[:2] == ["I look.", ""]
    assert shown(terminal)[2].endswith(" terminal ls  2.5 s")
    failed = ToolResult(call_id="c", name="terminal", text="no such file", is_error=True)
    await drawing.show([ToolFinished(call=_CALL, result=failed, seconds=2.6)])
    await drawing.show([TextDelta("\n\n"), TextDelta("Gone."), _DONE])
    assert [_STYLE.sub("", row) for row in shown(terminal)] == [
        "I look.",
        "",
        "✗ terminal ls  2.6 s  no such file",
        "",
        "Gone.",
    ]


@pytest.mark.asyncio
async def test_thinking_leaves_nothing() -> None:
    drawing, terminal, clock = view()
    await drawing.show([TurnStarted(turn_id="t", session_id="s"), ReasoningDelta("plan")])
    clock.now = 3.0
    await drawing.beat()
    assert shown(terminal)[0].endswith(" Thinking  3.0 s")
    await drawing.show([TextDelta("42"), _DONE])
    assert shown(terminal) == ["42"]


@pytest.mark.asyncio
async def test_a_remark_waits_for_the_end_of_a_paragraph() -> None:
    drawing, terminal, clock = view()
    drawing.remark("Starting the model.")
    await drawing.show([TurnStarted(turn_id="t", session_id="s")])
    assert shown(terminal)[0] == "Starting the model."
    await drawing.show([TextDelta("one")])
    drawing.remark("It is ready.")
    clock.now = 1.0
    await drawing.show([TextDelta(" two\n\nthree")])
    await drawing.show([_DONE])
    assert shown(terminal) == [
        *("Starting the model.", "", "one two", "", "three", "", "It is ready.")
    ]
