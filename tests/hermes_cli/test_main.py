"""The program as people run it: exit codes, one line for an error, quiet pipes, quick help."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes import __version__
from hermes.hermes_cli import main
from support.program import LIMIT, SOURCE, Program

Write = Callable[[str], Path]


def test_version_and_help_load_nothing_heavy(program: Program) -> None:
    version, help_ = program("--version"), program("--help")

    assert (version.returncode, version.stdout) == (0, f"hermes {__version__}\n")
    assert help_.returncode == 0
    for name in ("chat", "completion", "config", "doctor", "models", "serve"):
        assert f"  {name} " in help_.stdout
    loaded = program("--help", env={"PYTHONPROFILEIMPORTTIME": "1"}).stderr
    assert re.search(r"\| +click$", loaded, re.MULTILINE)
    for heavy in ("pydantic", "yaml", "aiohttp", "sqlalchemy", "rich", "dotenv", "asyncio"):
        assert not re.search(rf"\| +{heavy}$", loaded, re.MULTILINE)


def test_an_error_is_one_line_and_code_2_and_its_traceback_is_asked_for(
    program: Program, write_config: Write
) -> None:
    write_config("agent: {max_turns: many}")

    plain, debug = program("config", "show"), program("--debug", "config", "show")

    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr.startswith("hermes: ")
    assert plain.stderr.count("\n") == 1
    assert "agent.max_turns must be a whole number" in plain.stderr
    assert debug.returncode == 2
    assert "Traceback" in debug.stderr


@pytest.mark.parametrize("arguments", [["frobnicate"], ["--frob"], ["config", "get"]])
def test_wrong_usage_is_code_2_with_a_hint(program: Program, arguments: list[str]) -> None:
    ended = program(*arguments)

    assert ended.returncode == 2
    assert "Usage: hermes" in ended.stderr


def test_a_bug_is_one_line_and_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("sk-live-0123456789abcdefghijkl")

    monkeypatch.setattr("hermes.hermes_cli.config.load_settings", broken)

    assert main.run(["config", "show"]) == 1

    shown = capsys.readouterr()
    assert shown.err == (
        "hermes: internal error (RuntimeError); 'hermes --debug' shows the details.\n"
    )


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hermes.hermes_cli.config.load_settings", interrupted)

    assert main.run(["config", "show"]) == 130


def test_control_c_at_a_prompt_ends_with_130(home: Path) -> None:
    ready, told = os.pipe()
    command = (
        "import os, sys\n"
        "from hermes.hermes_cli.commands import config as command\n"
        f"command._asked = lambda key: (os.write({told}, b'x'), sys.stdin.read())[1]\n"
        "from hermes.hermes_cli.main import run\n"
        "sys.exit(run(['config', 'set', 'agent.max_turns']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[told],
        env={"PYTHONPATH": str(SOURCE), "HERMES_HOME": str(home), "PATH": os.environ["PATH"]},
    )
    try:
        os.close(told)
        assert os.read(ready, 1) == b"x"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        os.close(ready)
    assert process.returncode == 130
    assert b"Traceback" not in errors


def test_a_reader_that_goes_away_is_no_error(home: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as out:
        ended = subprocess.run(
            [sys.executable, "-m", "hermes", "config", "show", "--all"],
            stdout=out,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            check=False,
            env={"PYTHONPATH": str(SOURCE), "HERMES_HOME": str(home), "PATH": os.environ["PATH"]},
        )
    assert ended.stderr == b""


def test_home_and_profile_choose_the_folder(program: Program, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (home / "profiles" / "work").mkdir(parents=True)

    elsewhere = program("--home", str(other), "config", "path")
    profile = program("-p", "work", "config", "path")
    back = program(
        "-p", "default", "config", "path", env={"HERMES_HOME": str(home / "profiles" / "work")}
    )
    missing = program("-p", "../work", "config", "path")

    assert elsewhere.stdout == f"{other}/config.yaml\n"
    assert profile.stdout == f"{home}/profiles/work/config.yaml\n"
    assert back.stdout == f"{home}/config.yaml\n"
    assert missing.returncode == 2
    assert "default, work" in missing.stderr


@pytest.mark.parametrize(
    ("shell", "mark"),
    [("bash", "complete -o"), ("zsh", "#compdef hermes"), ("fish", "complete --no-files")],
)
def test_the_completion_script_of_each_shell_is_printed(
    capsys: pytest.CaptureFixture[str], shell: str, mark: str
) -> None:
    assert main.run(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert mark in script
    assert "_HERMES_COMPLETE" in script


def test_commands_and_keys_are_completed(program: Program) -> None:
    def completed(words: str, word: int) -> list[str]:
        ended = program(
            env={"_HERMES_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(word)}
        )
        return [line.partition(",")[2] for line in ended.stdout.splitlines()]

    assert completed("hermes con", 1) == ["config"]
    assert completed("hermes config set agent.max_", 3) == [
        "agent.max_turns",
        "agent.max_tokens_per_turn",
    ]
