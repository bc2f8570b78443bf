"""The scripts that set up and check the project say no when they should."""

import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(
    script: str, *arguments: str, root: Path = ROOT, **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(root / "scripts" / script), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the project's scripts and little else."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "constraints.txt").write_text("")
    return tmp_path


def executable(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def coverage_floor(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import coverage_floor

    return coverage_floor


def test_coverage_below_the_floor_is_refused_and_at_the_floor_accepted(
    coverage_floor: ModuleType,
) -> None:
    assert "fell to 89.9" in coverage_floor.verdict(90.0, 89.9)
    assert coverage_floor.verdict(90.0, 90.0) == ""


@pytest.mark.parametrize(
    ("floor", "reached", "lifted"), [(90.0, 93.0, 92.6), (90.0, 93.07, 92.6), (92.9, 93.0, 92.9)]
)
def test_the_floor_rises_with_a_margin_and_never_falls(
    coverage_floor: ModuleType, floor: float, reached: float, lifted: float
) -> None:
    assert coverage_floor.raised(floor, reached) == lifted


def given(checkout: Path, listed: str, counts: str) -> "subprocess.CompletedProcess[str]":
    (checkout / "tests" / "given_whole.txt").write_text(listed)
    runner = executable(checkout / "runner", f"echo '{counts}'; exit 1")
    return run("given", runner, root=checkout)


def test_a_listed_file_must_be_whole_and_another_is_only_reported(checkout: Path) -> None:
    counts = "test_a 3/3; test_b 1/2"

    whole = given(checkout, "# a comment\ntest_a # whole\n", counts)
    assert (whole.returncode, whole.stdout) == (0, f"given: {counts}\n")

    torn = given(checkout, "test_a\ntest_b\n", counts)
    assert torn.returncode == 1
    assert "test_b is listed as whole and has 1/2" in torn.stderr


@pytest.mark.parametrize("counts", ["", "collected nothing"])
def test_a_runner_without_counts_is_a_failure(checkout: Path, counts: str) -> None:
    assert given(checkout, "", counts).returncode == 1


def test_a_listed_file_that_the_runner_does_not_know_is_a_failure(checkout: Path) -> None:
    ended = given(checkout, "test_c\n", "test_a 3/3")

    assert (ended.returncode, "test_c" in ended.stderr) == (1, True)


def test_an_old_python_is_refused_by_name(checkout: Path) -> None:
    old = executable(
        checkout / "python-old", 'case "$1" in --version) echo Python 3.10.1;; *) exit 1;; esac'
    )

    ended = run("venv", "dev", root=checkout, PYTHON=old)

    assert ended.returncode == 2
    assert "Python 3.11 or newer is needed" in ended.stderr
    assert "Python 3.10.1" in ended.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_is_told_how_to_get_it(checkout: Path) -> None:
    bare = executable(
        checkout / "python-bare", 'case "$2" in *ensurepip*) exit 1;; *) exit 0;; esac'
    )

    ended = run("venv", "dev", root=checkout, PYTHON=bare)

    assert ended.returncode == 2
    assert "apt-get install python3-venv" in ended.stderr


def test_a_python_that_is_not_there_is_named(checkout: Path) -> None:
    ended = run("venv", "dev", root=checkout, PYTHON="python-none")

    assert (ended.returncode, "PYTHON=python-none" in ended.stderr) == (2, True)


def test_a_missing_program_is_named_with_its_package(checkout: Path, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    for name in ("bash", "grep", "dirname", "env"):
        (empty / name).symlink_to(str(shutil.which(name)))

    ended = run("needs", root=checkout, PATH=str(empty))
    packages = run("needs", "--packages", root=checkout, PATH=str(empty)).stdout.split()

    assert ended.returncode == 1
    assert "apt-get install make curl tmux git" in ended.stderr
    assert packages[:4] == ["make", "curl", "tmux", "git"]


def test_the_check_asks_for_an_environment_when_there_is_none(checkout: Path) -> None:
    ended = run("check", "--quick", root=checkout)

    assert ended.returncode == 2
    assert "make test" in ended.stderr


def test_the_check_names_the_step_that_failed(checkout: Path) -> None:
    tools = checkout / "tools"
    tools.mkdir()
    executable(tools / "ruff", '[ "$1" = format ]')

    ended = run(
        "check",
        "--quick",
        root=checkout,
        VIRTUAL_ENV=str(checkout),
        PATH=f"{tools}:{os.environ['PATH']}",
    )

    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1].startswith("check: FAILED at lint")
