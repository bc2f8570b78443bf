"""The tools that start processes, on the loop that the server uses."""

import asyncio
import json

import psutil
import pytest

from hermes.messages import ToolCall, ToolResult
from hermes.tools.base import ToolContext
from hermes.tools.registry import ToolOptions, build_toolbox
from hermes.tools.terminal import TerminalLimits
from support.children import Children

uvloop = pytest.importorskip("uvloop")


def _call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id="c1", name=name, arguments=json.dumps(arguments))


async def _use_all(context: ToolContext) -> list[ToolResult]:
    limits = TerminalLimits(grace=0.2)
    box = build_toolbox(options=ToolOptions(terminal=limits, ripgrep=""))
    return [
        await box.run(_call("terminal", command="echo said; exit 3"), context),
        await box.run(_call("terminal", command="seq 1 100000"), context),
        await box.run(_call("terminal", command="sleep 600 & sleep 600", timeout=1), context),
        await box.run(_call("write_file", path="a.txt", content="x\n"), context),
        await box.run(_call("search_files", pattern="x"), context),
    ]


async def _cancel(context: ToolContext, children: Children) -> None:
    box = build_toolbox()
    running = asyncio.ensure_future(
        box.run(_call("terminal", command="sleep 600 & sleep 600"), context)
    )
    await asyncio.to_thread(_wait_for_children, children)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def _wait_for_children(children: Children) -> None:
    while len(children()) < 3:
        pass


def test_processes_run_and_end_on_uvloop(context: ToolContext, children: Children) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(_use_all(context), 10))
        before = psutil.Process().num_fds()
        said, long, late, _, found = runner.run(asyncio.wait_for(_use_all(context), 10))
        runner.run(asyncio.wait_for(_cancel(context, children), 20))
        _, alive = psutil.wait_procs(children(), timeout=20)
        after = psutil.Process().num_fds()

    assert said.text.startswith("said\n[exit code 3; ")
    assert long.stored_as
    assert late.text.startswith("(no output)\n[timed out after 1 s and was killed; ")
    assert found.text == "a.txt\n  1: x"
    assert alive == []
    assert after <= before
