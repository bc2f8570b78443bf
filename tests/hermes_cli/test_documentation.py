"""docs/configuration.md: its examples work, and it names the settings that there are."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.hermes_cli import config, key_check
from support.program import LIMIT, SOURCE

PAGE = (SOURCE.parent / "docs" / "configuration.md").read_text()
Write = Callable[[str], Path]


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", _blocks("yaml"))
def test_every_example_is_read_without_a_warning(
    write_config: Write, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("LAB_KEY", "k")
    write_config(text)

    assert config.load_settings().warnings == ()


@pytest.mark.parametrize("text", _blocks("sh"))
def test_every_command_works(home: Path, tmp_path: Path, text: str) -> None:
    program = tmp_path / "hermes"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hermes "$@"\n')
    program.chmod(0o755)

    ended = subprocess.run(
        ["sh", "-e", "-c", text],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "PYTHONPATH": str(SOURCE),
            "HERMES_HOME": str(home),
            "MY_KEY": "sk-fake",
        },
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_every_setting_is_named_and_every_name_is_a_setting() -> None:
    endpoint = ("model.", "providers", "fallback_providers")
    known = {key for key in key_check.known_keys() if not key.startswith(endpoint)}
    table = PAGE.partition("## Everything else")[2].partition("## The server's key")[0]
    named = set(re.findall(r"^\| `([a-z_.]+)(?:\.NAME)?` \|", table, re.MULTILINE))
    assert named == known

    first = PAGE.partition("The keys of an endpoint")[2].partition("## Everything else")[0]
    rows = re.findall(r"^\| (`.*?) \|", first, re.MULTILINE)
    keys = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)} - {"model"}
    assert keys | {"model"} == {
        key.removeprefix("model.") for key in key_check.known_keys() if key.startswith("model.")
    }
