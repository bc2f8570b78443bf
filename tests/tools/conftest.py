"""Fixtures of the tools' tests: a place to work in and the shipped toolbox."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.messages import ToolCall, ToolResult
from hermes.tools.base import ToolContext
from hermes.tools.registry import ToolOptions, build_toolbox
from hermes.tools.terminal import TerminalLimits
from support.children import Children, new_children


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    workdir = tmp_path / "work"
    workdir.mkdir()
    return ToolContext(
        session_id="ses_1",
        turn_id="turn_1",
        call_id="call_1",
        workdir=workdir,
        results=tmp_path / "results",
        environment={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"},
    )


@pytest.fixture
def children() -> Children:
    return new_children()


Run = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def run(context: ToolContext) -> Run:
    """Call a shipped tool by name through the toolbox, arguments as JSON text."""
    limits = TerminalLimits(grace=0.2)
    box = build_toolbox(options=ToolOptions(terminal=limits, ripgrep="", search_seconds=4.0))

    async def call(name: str, **arguments: Any) -> ToolResult:
        asked = ToolCall(id=context.call_id, name=name, arguments=json.dumps(arguments))
        return await box.run(asked, context)

    return call
