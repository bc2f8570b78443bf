"""Fixtures of the tools' tests: a place to work in and a toolbox."""

from pathlib import Path

import pytest

from hermes.tools.base import ToolContext


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
        environment={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"},
    )
