"""What the tests of the program share: a home folder to write, the program to run."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from support.program import LIMIT, SOURCE, Program


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine reaches the settings of a test."""
    for name in list(os.environ):
        if name.startswith(("API_SERVER_", "HERMES_STREAM", "HERMES_LOCAL")) or name.endswith(
            "_API_KEY"
        ):
            monkeypatch.delenv(name)


@pytest.fixture
def write_config(home: Path) -> Callable[[str], Path]:
    """Write config.yaml of the test's home."""

    def write(text: str) -> Path:
        path = home / "config.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def program(home: Path) -> Program:
    """Run the real program in the test's home."""

    def run(
        *arguments: str, env: Mapping[str, str] | None = None, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hermes", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(SOURCE),
                "HERMES_HOME": str(home),
                **(env or {}),
            },
        )

    return run
