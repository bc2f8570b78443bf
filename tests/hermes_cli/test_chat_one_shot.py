"""``hermes chat -q`` and pipes, the real program against a provider over HTTP."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.process import LIMIT, ran, started
from support.program import SOURCE
from support.scripted_http import (
    DONE,
    LAST,
    Answer,
    Fault,
    ScriptedHttp,
    chat,
    chunk,
    delta,
    error,
    head,
    stream,
    usage,
)

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def configured(home: Path, scripted_http: ScriptedHttp) -> None:
    """A home folder whose model is the scripted one."""
    (home / "config.yaml").write_text(
        f"model: {{provider: custom, base_url: '{scripted_http.base_url}', default: test-model,"
        " api_key: sk-test-0123456789}\n"
        "agent: {api_max_retries: 2}\n"
    )


def tool_step(command: str, said: str = "") -> Answer:
    call = {"index": 0, "id": "call_1", "function": {"name": "terminal"}}
    call["function"] |= {"arguments": json.dumps({"command": command})}  # type: ignore[operator]
    text = [delta(content=said)] if said else []
    return stream(*text, delta(tool_calls=[call]), delta(finish="tool_calls"), usage(), DONE)


def asked(server: ScriptedHttp, number: int = 1) -> str:
    """What the user said last in a request."""
    messages: Sequence[dict[str, Any]] = server.requests[number - 1].body["messages"]
    return str([message for message in messages if message["role"] == "user"][-1]["content"])


async def test_the_answer_alone_is_on_standard_output(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("**Hello** ", "there"))
    ended = await ran("chat", "-q", "hi")
    assert (ended.code, ended.out, ended.err) == (0, "**Hello** there\n", "")
    assert asked(scripted_http) == "hi"


async def test_words_are_out_before_the_provider_goes_on(scripted_http: ScriptedHttp) -> None:
    go_on = asyncio.Event()
    scripted_http.script(
        [
            *(head(), chunk(delta(content="first ")), go_on, chunk(delta(content="second"))),
            *(chunk(delta(finish="stop")), chunk(DONE), LAST),
        ]
    )
    async with asyncio.timeout(LIMIT), started("chat", "-q", "hi") as program:
        assert await program.out.readexactly(6) == b"first "
        go_on.set()
        assert await program.out.read() == b"second\n"
        assert await program.wait() == 0


async def test_a_question_can_be_piped_in(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("yes"))
    ended = await ran("chat", stdin=b"is it so?\n")
    assert (ended.code, ended.out) == (0, "yes\n")
    assert asked(scripted_http) == "is it so?"


async def test_a_question_about_what_is_piped_in_holds_both(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("short"))
    ended = await ran("chat", "-q", "summarise", stdin="größe\n漢字\n".encode())
    assert ended.code == 0
    assert asked(scripted_http) == "summarise\n\n<input>\ngröße\n漢字\n</input>"


@pytest.mark.parametrize("stdin", [b"", b" \n"])
async def test_no_question_is_wrong_use(stdin: bytes) -> None:
    ended = await ran("chat", stdin=stdin)
    assert ended.code == 2
    assert "There is no question" in ended.err


async def test_bytes_that_are_no_text_are_refused(scripted_http: ScriptedHttp) -> None:
    ended = await ran("chat", "-q", "what?", stdin=b"\x7fELF\0\0")
    assert (ended.code, ended.out) == (1, "")
    assert "not text" in ended.err
    assert scripted_http.requests == []


async def test_tools_are_told_beside_the_answer(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(tool_step("echo it-ran", "I look."), chat("Done."))
    ended = await ran("chat", "-q", "look")
    assert ended.out == "I look.\n\nDone.\n"
    assert ended.err.startswith("● terminal echo it-ran  ")
    assert ended.err.count("\n") == 1


async def test_a_failed_tool_is_marked_and_a_turn_of_failures_noted(
    scripted_http: ScriptedHttp,
) -> None:
    scripted_http.script(tool_step("exit 3"), chat("All went well."))
    ended = await ran("chat", "-q", "look")
    assert ended.out.strip() == "All went well."
    assert ended.err.startswith("✗ terminal exit 3  ")
    assert "no tool call of this turn succeeded" in ended.err


async def test_a_secret_in_a_tool_line_is_not_shown(scripted_http: ScriptedHttp) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    scripted_http.script(tool_step(f"echo {key} >/dev/null"), chat("Done."))
    ended = await ran("chat", "-q", "look")
    assert key not in ended.err
    assert "● terminal echo" in ended.err


async def test_a_retry_is_said_and_the_answer_comes(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(error(503, "busy", retry_after="0"), chat("here"))
    ended = await ran("chat", "-q", "hi")
    assert (ended.code, ended.out) == (0, "here\n")
    assert "Trying again" in ended.err


async def test_a_refused_key_fails_with_the_next_step(scripted_http: ScriptedHttp) -> None:
    scripted_http.default = lambda _: error(401, "Incorrect API key provided")
    ended = await ran("chat", "-q", "hi")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Error: Incorrect API key provided. ")
    assert "hermes config" in ended.err
    assert ended.err.count("\n") == 1


async def test_half_an_answer_is_kept_and_called_so(scripted_http: ScriptedHttp) -> None:
    scripted_http.default = lambda _: [head(), chunk(delta(content="half of")), Fault.RESET]
    ended = await ran("chat", "-q", "hi")
    assert (ended.code, ended.out) == (1, "half of\n")
    assert "not whole" in ended.err


async def test_an_answer_cut_at_the_limit_says_so(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("part", finish="length"))
    ended = await ran("chat", "-q", "hi")
    assert (ended.code, ended.out) == (3, "part\n")
    assert "output limit" in ended.err


async def test_ctrl_c_stops_the_turn_and_keeps_what_was_said(scripted_http: ScriptedHttp) -> None:
    scripted_http.script([head(), chunk(delta(content="so far")), Fault.HANG])
    async with asyncio.timeout(LIMIT), started("chat", "-q", "hi") as program:
        assert await program.out.readexactly(6) == b"so far"
        program.send(signal.SIGINT)
        assert await program.out.read() == b"\n"
        assert await program.wait() == 130
        err = await program.err.read()
    assert err.decode() == "Stopped; what was said is kept.\n"
    assert scripted_http.requests[0].hung_up.is_set()
    scripted_http.script(chat("on"))
    await ran("chat", "-q", "go on", "--session", "last")
    said = [message["content"] for message in scripted_http.requests[1].body["messages"][1:]]
    assert said == ["hi", "so far", "go on"]


async def test_a_signal_to_end_stops_the_turn_and_stores_it(scripted_http: ScriptedHttp) -> None:
    scripted_http.script([head(), chunk(delta(content="so far")), Fault.HANG], chat("on"))
    async with asyncio.timeout(LIMIT), started("chat", "-q", "hi") as program:
        assert await program.out.readexactly(6) == b"so far"
        program.send(signal.SIGTERM)
        assert await program.wait() == 143
    await ran("chat", "-q", "go on", "--session", "last")
    said = [message["content"] for message in scripted_http.requests[1].body["messages"][1:]]
    assert said == ["hi", "so far", "go on"]


async def test_a_reader_that_leaves_ends_the_program_quietly(scripted_http: ScriptedHttp) -> None:
    go_on = asyncio.Event()
    scripted_http.script(
        [head(), chunk(delta(content="one\n")), go_on, chunk(delta(content="two\n")), Fault.HANG]
    )
    async with asyncio.timeout(LIMIT), started("chat", "-q", "hi") as program:
        assert await program.out.readline() == b"one\n"
        program.hang_up()
        go_on.set()
        assert await program.err.read() == b""
        assert await program.wait() == 0
    assert scripted_http.requests[0].hung_up.is_set()


async def test_a_slow_reader_gets_everything(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat(*(f"{number:>9}\n" for number in range(30_000))))
    async with asyncio.timeout(LIMIT), started("chat", "-q", "hi") as program:
        lines = (await program.out.read()).split()
    assert [int(line) for line in lines] == list(range(30_000))


async def test_json_tells_every_event(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(tool_step("echo it-ran", "I look."), chat("Done."))
    ended = await ran("chat", "--json", "-q", "look")
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert (ended.code, ended.err) == (0, "")
    assert [event["type"] for event in events] == [
        "turn_started",
        "step_started",
        "text_delta",
        "tool_started",
        "tool_finished",
        "step_started",
        "text_delta",
        "text_delta",
        "turn_finished",
    ]
    assert events[3]["arguments"] == {"command": "echo it-ran"}
    assert events[4]["is_error"] is False
    assert "it-ran" in events[4]["text"]
    assert events[-1]["status"] == "completed"
    assert events[-1]["text"] == "I look.\n\nDone."
    assert events[-1]["tools"] == {"attempted": 1, "succeeded": 1, "failed": 0}
    assert events[-1]["usage"]["input"] == 14


async def test_json_tells_a_failure(scripted_http: ScriptedHttp) -> None:
    scripted_http.default = lambda _: error(401, "Incorrect API key provided")
    ended = await ran("chat", "--json", "-q", "hi")
    last = json.loads(ended.out.splitlines()[-1])
    assert ended.code == 1
    assert (last["type"], last["status"]) == ("turn_failed", "failed")
    assert last["error"]["code"] == "authentication"


async def test_json_tells_a_turn_that_could_not_begin() -> None:
    ended = await ran("chat", "--json", "-q", "hi", "--session", "no-such")
    assert ended.code == 1
    assert json.loads(ended.out)["error"]["code"] == "session_not_found"
    assert ended.err.startswith("Error: There is no session 'no-such'.")


async def test_a_session_goes_on_by_the_beginning_of_its_id(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("blue"), chat("still blue"))
    first = await ran("chat", "--json", "-q", "which colour?")
    session = json.loads(first.out.splitlines()[0])["session_id"]
    await ran("chat", "-q", "and now?", "--session", session[:10])
    said = [message["content"] for message in scripted_http.requests[1].body["messages"][1:]]
    assert said == ["which colour?", "blue", "and now?"]


async def test_another_model_can_be_asked(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("yes"))
    await ran("chat", "-q", "hi", "--model", "other")
    assert scripted_http.requests[0].body["model"] == "other"


async def test_settings_that_are_wrong_are_said_plainly(home: Path) -> None:
    (home / "config.yaml").write_text("model: {provider: no-such-provider, default: x}\n")
    ended = await ran("chat", "-q", "hi")
    assert ended.code == 2
    assert ended.err.startswith("Error: ")
    assert "Traceback" not in ended.err


async def test_a_pipe_needs_no_library_of_the_terminal(scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("hello"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-X", "importtime", "-m", "hermes", "chat", "-q", "hi"),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    async with asyncio.timeout(LIMIT):
        out, err = await process.communicate()
    assert (process.returncode, out) == (0, b"hello\n")
    modules = {line.rpartition("|")[2].strip() for line in err.decode().splitlines()}
    packages = {module.partition(".")[0] for module in modules}
    assert "aiohttp" in packages
    assert not packages & {"rich", "prompt_toolkit", "pygments", "markdown_it"}
