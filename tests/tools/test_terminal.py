"""Real commands, real processes, real time limits."""

import asyncio
import json
import os
import signal
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from hermes.messages import ToolCall, ToolResult
from hermes.tools.base import ToolContext
from hermes.tools.registry import build_toolbox
from support.children import Children

Run = Callable[..., Awaitable[ToolResult]]


class Witness:
    """A pipe that commands hold open: it tells when they began and when the last one ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Held open for writing too, so that opening waits for nobody.
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(self._reader, True)

    async def read_line(self) -> str:
        """Return the next line that a command wrote, within five seconds."""
        async with asyncio.timeout(20):
            return await asyncio.to_thread(self._read_line)

    async def all_gone(self) -> bool:
        """Return whether every process that held the pipe ended within five seconds."""
        async with asyncio.timeout(20):
            return await asyncio.to_thread(os.read, self._reader, 1) == b""

    def _read_line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            try:
                os.set_blocking(self._reader, False)
                piece = os.read(self._reader, 1)
            except BlockingIOError:
                continue
            line += piece
        os.set_blocking(self._reader, True)
        return line.decode().strip()

    def close(self) -> None:
        os.close(self._reader)


@pytest.fixture
def witness(tmp_path: Path):
    made = Witness(tmp_path / "witness")
    yield made
    made.close()


def _is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _wait_for_children(children: Children) -> None:
    _, alive = psutil.wait_procs(children(), timeout=20)
    assert alive == []


def _without_time(result: ToolResult) -> str:
    return result.text.rpartition("; ")[0]


@pytest.mark.asyncio
async def test_output_of_both_streams_and_the_exit_code_are_told(run: Run) -> None:
    result = await run("terminal", command="echo out; echo err >&2; echo out again")

    assert _without_time(result) == "out\nerr\nout again\n[exit code 0"
    assert not result.is_error
    assert result.stored_as == ""


@pytest.mark.asyncio
@pytest.mark.parametrize("code", [1, 2, 127, 255])
async def test_an_exit_code_that_is_not_zero_is_an_error(code: int, run: Run) -> None:
    result = await run("terminal", command=f"echo said; exit {code}")

    assert _without_time(result) == f"said\n[exit code {code}"
    assert result.is_error


@pytest.mark.asyncio
async def test_a_command_killed_by_a_signal_is_an_error_that_names_it(run: Run) -> None:
    result = await run("terminal", command="kill -SEGV $$")

    assert _without_time(result) == "(no output)\n[killed by SIGSEGV"
    assert result.is_error


@pytest.mark.asyncio
async def test_a_command_has_nothing_to_read(run: Run) -> None:
    result = await run("terminal", command="cat; read line; echo read gave $?")

    assert _without_time(result) == "read gave 1\n[exit code 0"


@pytest.mark.asyncio
async def test_a_command_sees_only_the_environment_it_is_given(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "never seen")

    result = await run("terminal", command="env | cut -d= -f1 | sort | tr '\\n' ' '")

    names = set(_without_time(result).partition("\n")[0].split())
    assert names - {"_", "PWD", "SHLVL", "OLDPWD"} == {"HOME", "LANG", "PATH"}


@pytest.mark.asyncio
async def test_a_command_runs_in_the_folder_it_names(run: Run, context: ToolContext) -> None:
    (context.workdir / "inner").mkdir()

    here = await run("terminal", command="pwd")
    inner = await run("terminal", command="pwd", workdir="inner")
    home = await run("terminal", command="pwd", workdir="~")
    nowhere = await run("terminal", command="pwd", workdir="nowhere")

    assert _without_time(here).startswith(f"{context.workdir}\n")
    assert _without_time(inner).startswith(f"{context.workdir}/inner\n")
    assert _without_time(home).startswith(f"{context.environment['HOME']}\n")
    assert nowhere.is_error
    assert "does not exist" in nowhere.text


@pytest.mark.asyncio
async def test_a_time_limit_kills_the_whole_session(run: Run, witness: Witness) -> None:
    # ``timeout`` and job control put processes in groups of their own.
    command = (
        f"exec 3>{witness.path}; echo $$ >&3; echo before; trap '' TERM; set -m; "
        "sleep 600 & timeout 600 sleep 600 & (trap '' TERM; sleep 600; sleep 600) & "
        "wait; wait; wait"
    )
    async with asyncio.timeout(20):
        result = await run("terminal", command=command, timeout=1)
    pid = int(await witness.read_line())

    assert _without_time(result) == "before\n[timed out after 1 s and was killed"
    assert result.is_error
    assert await witness.all_gone()
    assert _is_gone(pid)


@pytest.mark.asyncio
async def test_a_command_may_clean_up_when_its_time_is_over(run: Run) -> None:
    command = "trap 'echo cleaned; exit 0' TERM; sleep 600 & wait"

    result = await run("terminal", command=command, timeout=1)

    assert "cleaned" in result.text
    assert "timed out" in result.text


@pytest.mark.asyncio
async def test_cancelling_kills_everything_at_once(run: Run, witness: Witness) -> None:
    command = (
        f"exec 3>{witness.path}; trap '' TERM INT HUP; sleep 600 & timeout 600 sleep 600 & "
        "echo $$ >&3; wait; wait"
    )
    running = asyncio.ensure_future(run("terminal", command=command))
    pid = int(await witness.read_line())
    assert not _is_gone(pid)

    running.cancel()
    async with asyncio.timeout(2):
        with pytest.raises(asyncio.CancelledError):
            await running

    assert _is_gone(pid)
    assert await witness.all_gone()


@pytest.mark.asyncio
@pytest.mark.parametrize("steps", range(12))
async def test_cancelling_at_any_early_moment_leaves_no_process(
    steps: int, run: Run, children: Children
) -> None:
    running = asyncio.ensure_future(run("terminal", command="exec sleep 617"))
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.to_thread(_wait_for_children, children)


@pytest.mark.asyncio
async def test_cancelling_while_output_streams_to_disk_keeps_no_output(
    run: Run, context: ToolContext, witness: Witness
) -> None:
    command = f"exec 3>{witness.path}; head -c 1000000 /dev/zero; echo on >&3; yes"
    running = asyncio.ensure_future(run("terminal", command=command))
    assert await witness.read_line() == "on"

    running.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await running

    assert await witness.all_gone()
    assert list(context.results.glob("*/*")) == []


@pytest.mark.asyncio
async def test_a_background_child_that_holds_the_pipe_does_not_hold_the_tool(
    run: Run, witness: Witness
) -> None:
    command = f"sleep 600 & echo $! > {witness.path}; echo started"
    answer = asyncio.ensure_future(run("terminal", command=command))
    child = int(await witness.read_line())
    try:
        async with asyncio.timeout(20):
            result = await answer

        assert result.text.startswith("started\n[exit code 0; ")
        assert "a background process still runs" in result.text
        assert not result.is_error
        assert not _is_gone(child)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.asyncio
async def test_a_background_child_that_never_stops_talking_does_not_hold_the_tool(
    run: Run, witness: Witness
) -> None:
    command = f"yes & echo $! > {witness.path}"
    answer = asyncio.ensure_future(run("terminal", command=command))
    child = int(await witness.read_line())
    try:
        async with asyncio.timeout(20):
            result = await answer

        assert "a background process still runs" in result.text
        assert len(result.text) <= 30_000
    finally:
        if not _is_gone(child):
            os.kill(child, signal.SIGKILL)


@pytest.mark.asyncio
async def test_a_command_that_closes_its_output_is_still_waited_for(run: Run) -> None:
    result = await run("terminal", command="echo said; exec >&- 2>&-; read x; exit 7")

    assert _without_time(result) == "said\n[exit code 7"


@pytest.mark.asyncio
async def test_a_hundred_megabytes_are_taken_in_flat_memory(run: Run, context: ToolContext) -> None:
    tracemalloc.start()
    try:
        async with asyncio.timeout(30):
            result = await run(
                "terminal", command="echo first; yes 0123456789abcde | head -c 100000000; echo last"
            )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 * 2**20
    assert not result.is_error
    assert len(result.text) <= 30_000
    assert result.text.startswith("first\n0123456789abcde\n")
    assert "\nlast\n[exit code 0; " in result.text
    assert "bytes left out; " in result.text
    assert "gives the first 52,428,800" in result.text
    [kept] = context.results.glob("*/*")
    assert kept.stat().st_size == 50 * 2**20
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert kept.stem == result.stored_as


@pytest.mark.asyncio
async def test_the_whole_of_a_long_output_can_be_read(run: Run) -> None:
    result = await run("terminal", command="seq 1 100000")
    page = await run("read_result", id=result.stored_as, offset=300_000, limit=50)
    end = await run("read_result", id=result.stored_as, offset=-14)

    assert f'read_result(id="{result.stored_as}") gives the whole' in result.text
    lines = "".join(f"{number}\n" for number in range(51852, 51860))
    assert page.text == f"{lines}\n[bytes 300000-300048 of 588895; next offset 300048]"
    assert end.text == "\n99999\n100000\n\n[bytes 588881-588895 of 588895; end]"


@pytest.mark.asyncio
async def test_binary_output_is_named_and_not_shown(run: Run) -> None:
    result = await run("terminal", command="head -c 5000 /dev/zero; head -c 5000 /dev/urandom")

    assert _without_time(result) == "(binary output, 10,000 bytes, not shown)\n[exit code 0"


@pytest.mark.asyncio
async def test_stray_bytes_do_not_hide_text(run: Run) -> None:
    result = await run("terminal", command=r"printf 'caf\351 \377 ok \0 \033[31mred\033[0m\n'")

    assert _without_time(result) == "caf\ufffd \ufffd ok  red\n[exit code 0"
    result.text.encode()


@pytest.mark.asyncio
async def test_progress_written_over_itself_is_shown_in_its_last_state(run: Run) -> None:
    command = (
        "for i in $(seq 1 5000); do printf '\\r%d%%' $i; done; "
        "printf '\\r\\n'; printf 'a\\r\\nb\\n'"
    )

    result = await run("terminal", command=command)

    assert _without_time(result) == "5000%\na\nb\n[exit code 0"


@pytest.mark.asyncio
async def test_unicode_goes_both_ways(run: Run) -> None:
    result = await run("terminal", command="echo 'äöü € 😀 \u2028 日本'")

    assert _without_time(result) == "äöü € 😀 \u2028 日本\n[exit code 0"


@pytest.mark.asyncio
async def test_a_command_of_a_thousand_lines_and_a_nul_are_handled(run: Run) -> None:
    long = await run("terminal", command="\n".join(["true"] * 1000) + "\necho end")
    nul = await run("terminal", command="echo \0")

    assert _without_time(long) == "end\n[exit code 0"
    assert nul.is_error
    assert "NUL" in nul.text


@pytest.mark.asyncio
async def test_a_command_too_long_for_the_system_is_told(run: Run) -> None:
    result = await run("terminal", command="echo " + "x" * 3_000_000)

    assert result.is_error
    assert "Argument list too long" in result.text


@pytest.mark.asyncio
async def test_a_timeout_beyond_the_bound_is_refused_in_words(run: Run) -> None:
    result = await run("terminal", command="true", timeout=600_000)

    assert result.is_error
    assert "timeout: expected at most 600" in result.text


@pytest.mark.asyncio
async def test_many_commands_run_side_by_side(run: Run, tmp_path: Path) -> None:
    # Each waits until all are there, so they end only if all run at once.
    command = (
        f"touch {tmp_path}/c{{}}; until [ $(ls {tmp_path}/c* | wc -l) = 6 ]; do :; done; echo {{}}"
    )
    async with asyncio.timeout(20):
        results = await asyncio.gather(
            *(run("terminal", command=command.format(n, n), timeout=15) for n in range(6))
        )

    assert [result.text[0] for result in results] == list("012345")


@pytest.mark.asyncio
async def test_a_busy_command_leaves_the_loop_free(run: Run) -> None:
    turns = 0
    busy = asyncio.ensure_future(run("terminal", command="while :; do :; done", timeout=1))
    while not busy.done():
        turns += 1
        await asyncio.sleep(0)

    assert "timed out" in busy.result().text
    assert turns > 1000


@pytest.mark.asyncio
async def test_progress_tells_whole_lines_without_secrets(context: ToolContext) -> None:
    told: list[str] = []
    box = build_toolbox()
    key = "sk-proj-" + "Q7x9Lm2p" * 6
    command = (
        f"printf 'start\\n'; sleep 1.1; printf 'key {key}\\nhalf {key[:20]}'; "
        f"sleep 0.1; printf '{key[20:]}\\n'"
    )
    call = ToolCall(id="c1", name="terminal", arguments=json.dumps({"command": command}))

    await box.run(call, replace(context, progress=told.append))

    assert told == ["key ***"]


@pytest.mark.asyncio
async def test_no_descriptor_is_left_behind(run: Run) -> None:
    await run("terminal", command="true")
    before = psutil.Process().num_fds()

    for _ in range(5):
        await run("terminal", command="echo x")
        await run("terminal", command="seq 1 100000")
    await run("terminal", command="sleep 5", timeout=1)

    assert psutil.Process().num_fds() <= before
