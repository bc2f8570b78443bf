"""``hermes chat`` at a real terminal, against a provider over HTTP."""

import asyncio
import re
import stat
from pathlib import Path

import pytest

from support import tmux
from support.scripted_http import (
    DONE,
    LAST,
    Answer,
    Fault,
    ScriptedHttp,
    chat,
    chat_events,
    chunk,
    delta,
    error,
    head,
    stream,
    usage,
    wait_until,
)
from support.tmux import hermes

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(not tmux.AVAILABLE, reason="needs tmux, a real terminal to run in"),
]

_DOCUMENT = """# Title

Words with **weight** and 漢字.

- first
- second

```python
x = 1
```

| a | b |
|---|---|
| 1 | 2 |

The end.
"""

_DRAWN = """# Title

Words with weight and 漢字.

• first
• second

```python
x = 1
```

 a  b
 ────
 1  2

The end."""


@pytest.fixture(autouse=True)
def configured(home: Path, scripted_http: ScriptedHttp) -> None:
    """A home folder whose model is the scripted one."""
    (home / "config.yaml").write_text(
        f"model: {{provider: custom, base_url: '{scripted_http.base_url}', default: test-model,"
        " api_key: sk-test-0123456789}\n"
    )


def tool_call(command: str) -> list[bytes]:
    function = {"name": "terminal", "arguments": f'{{"command": "{command}"}}'}
    call = {"index": 0, "id": "call_1", "function": function}
    return [delta(tool_calls=[call]), delta(finish="tool_calls"), usage(), DONE]


def paused(before: list[bytes], event: asyncio.Event, after: list[bytes]) -> Answer:
    return [head(), *map(chunk, before), event, *map(chunk, after), LAST]


async def asked(server: ScriptedHttp, number: int) -> list[tuple[str, str]]:
    """Roles and texts of a request's messages, without the system's."""
    request = await server.request(number)
    return [(str(m["role"]), str(m["content"])) for m in request.body["messages"][1:]]


async def test_an_answer_grows_and_stands_for_good(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    middle = asyncio.Event()
    cut = _DOCUMENT.index("rst\n")
    first, rest = _DOCUMENT[:cut], _DOCUMENT[cut:]
    scripted_http.script(
        paused([delta(content=c) for c in first], middle, chat_events(rest, "stop"))
    )
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help lists the commands")
        await terminal.enter("show me")
        await terminal.until("• fi\n")
        middle.set()
        await terminal.until("tokens")
        whole = await terminal.screen(all_rows=True)
        assert f"> show me\n\n{_DRAWN}\n\n>" in whole
        assert whole.count("Title") == 1
        assert "Waiting for the model" not in whole


async def test_more_rows_than_the_window_has_stand_once_and_in_order(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    pieces = [f"\n{number}. number {number}" for number in range(1, 61)]
    block = "\n\n```\n" + "".join(f"code {number}\n" for number in range(40)) + "```\n"
    scripted_http.script(chat(*pieces, *block, "\nlast words"))
    async with hermes(tmp_path, home, "chat", height=12) as terminal:
        await terminal.until("/help")
        await terminal.enter("count")
        await terminal.until("last words\n\n>")
        rows = (await terminal.screen(all_rows=True)).split("\n")
        numbers = [row for row in rows if ". number" in row]
        assert numbers == [f"{number}. number {number}" for number in range(1, 61)]
        assert [row for row in rows if row.startswith("code")] == [f"code {n}" for n in range(40)]


async def test_ctrl_c_stops_the_turn_or_clears_the_message_and_the_program_lives(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    scripted_http.script([head(), chunk(delta(content="said so far")), Fault.HANG], chat("And on."))
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("talk")
        await terminal.until("said so far")
        await terminal.press("C-c")
        await terminal.until("said so far\n\nStopped; what was said is kept.\n\n>")
        await wait_until((await scripted_http.request(1)).hung_up.is_set)
        await terminal.press("C-c")
        await terminal.until("Ctrl-D or /quit leaves.")
        await terminal.type("half a mess")
        await terminal.until("> half a mess")
        await terminal.press("C-c")
        await terminal.until(lambda screen: "half a mess" not in screen)
        await terminal.enter("go on")
        await terminal.until("And on.\n\n>")
        assert await asked(scripted_http, 2) == [
            ("user", "talk"),
            ("assistant", "said so far"),
            ("user", "go on"),
        ]
        await terminal.press("C-d")
        await terminal.until("Go on with: hermes chat --session ses_")
        await terminal.until("[exit 0]")


async def test_a_session_that_goes_on_shows_its_last_exchange(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    scripted_http.script(chat("It is **blue**."), chat("Yes."))
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("which colour?")
        await terminal.until("It is blue.\n\n>")
        await terminal.press("C-d")
        await terminal.until("[exit 0]")
    async with hermes(tmp_path, home, "chat --session last") as terminal:
        await terminal.until("> which colour?\n\nIt is blue.\n\n>")
        await terminal.enter("sure?")
        await terminal.until("Yes.")
    assert ("assistant", "It is **blue**.") in await asked(scripted_http, 2)


async def test_sessions_are_listed_left_and_entered(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    scripted_http.script(chat("One."), chat("Two."), chat("Three."))
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("first question")
        await terminal.until("One.\n\n>")
        await terminal.enter("/new")
        await terminal.until("A new session")
        await terminal.enter("second question")
        await terminal.until("Two.\n\n>")
        await terminal.enter("/sessions")
        listed = await terminal.until("/resume NUMBER")
        assert listed.index("second question", listed.index("/sessions")) < listed.rindex(
            "first question"
        )
        await terminal.enter("/resume 2")
        await terminal.until("One.\n\n>")
        await terminal.enter("third question")
        await terminal.until("Three.\n\n>")
        assert [text for _, text in await asked(scripted_http, 3)] == [
            "first question",
            "One.",
            "third question",
        ]
        await terminal.enter("/nonsense")
        await terminal.until("There is no command /nonsense")
        await terminal.enter("/model")
        await terminal.until("Model: m (custom)")


async def test_several_lines_are_one_message(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    scripted_http.script(chat("ok"))
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.type("one")
        await terminal.press("M-Enter")
        await terminal.enter("two\\")
        await terminal.paste("three\nfour")
        await terminal.until("four")
        await terminal.press("Enter")
        assert await asked(scripted_http, 1) == [("user", "one\ntwo\nthree\nfour")]


async def test_history_is_private_kept_and_searched(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    scripted_http.default = lambda _: chat("ok")
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("a needle in hay")
        await terminal.until("ok\n\n>")
        await terminal.press("C-d")
        await terminal.until("[exit 0]")
    assert stat.S_IMODE((home / "chat_history").stat().st_mode) == 0o600
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.press("C-r")
        await terminal.type("needle")
        await terminal.until("> a needle in hay")
        await terminal.press("Enter")
        await terminal.press("Enter")
        await scripted_http.request(2)


async def test_a_running_tool_counts_its_time_and_ends_as_one_row(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    done = tmp_path / "done"
    wait = f"while ! [ -e {done} ]; do sleep 0.02; done; echo out"
    scripted_http.script(stream(delta(content="I look."), *tool_call(wait)), chat("Done."))
    async with hermes(tmp_path, home, "chat", width=60) as terminal:
        await terminal.until("/help")
        await terminal.enter("look")
        await terminal.until("terminal while ! [")
        done.touch()
        screen = await terminal.until("Done.\n\n>")
        said = screen[screen.index("> look") :]
        rows = [row for row in said.split("\n") if "terminal" in row]
        assert len(rows) == 1
        assert rows[0].startswith("● terminal while ! [")
        assert said.startswith("> look\n\nI look.\n\n● ")


async def test_what_is_typed_while_a_tool_runs_goes_into_the_turn(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    done = tmp_path / "done"
    wait = f"while ! [ -e {done} ]; do sleep 0.02; done"
    scripted_http.script(stream(*tool_call(wait)), chat("Done."))
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("look")
        await terminal.until("terminal while")
        await terminal.type("and be quick")
        await terminal.until("> and be quick")
        await terminal.press("Enter")
        await terminal.until("(for the next tool step)")
        done.touch()
        await terminal.until("Taken into the turn: and be quick")
        await terminal.until("Done.\n\n>")
        assert (await asked(scripted_http, 2))[-1] == ("user", "and be quick")


async def test_what_is_typed_too_late_is_offered_as_the_next_message(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    go_on = asyncio.Event()
    scripted_http.script(paused([delta(content="Well")], go_on, chat_events([", yes."], "stop")))
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("hello")
        await terminal.until("Well")
        await terminal.enter("why?")
        await terminal.until("(for the next tool step)")
        await terminal.type("and h")
        await terminal.until("> and h")
        go_on.set()
        await terminal.until("Well, yes.\n\n> why?\n  and h")


async def test_thinking_is_told_and_not_shown(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    go_on = asyncio.Event()
    secret = delta(reasoning_content="secret plan")
    scripted_http.script(paused([secret], go_on, chat_events(["42"], "stop")))
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("think")
        await terminal.until("Thinking")
        go_on.set()
        await terminal.until("> think\n\n42\n\n>")
        whole = await terminal.screen(all_rows=True)
        assert "Thinking" not in whole
        assert "secret" not in whole


async def test_a_retry_and_a_failure_are_one_row_each(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    scripted_http.script(error(503, "busy", retry_after="0"), error(401, "wrong key"))
    async with hermes(tmp_path, home, "chat", width=200) as terminal:
        await terminal.until("/help")
        await terminal.enter("hello")
        screen = await terminal.until("Error: wrong key.")
        assert "\n↻ busy. Trying again" in screen
        assert "hermes config" in screen
        scripted_http.script(chat("better"))
        await terminal.until("wrong key")
        await terminal.enter("and now?")
        await terminal.until("better\n\n>")


async def test_a_window_made_narrower_keeps_what_was_said(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    go_on = asyncio.Event()
    words = "all these words stand in one paragraph that is being written"
    scripted_http.script(
        paused([delta(content=f"First.\n\n{words}")], go_on, chat_events([" still"], "stop"))
    )
    async with hermes(tmp_path, home, "chat") as terminal:
        await terminal.until("/help")
        await terminal.enter("hello")
        await terminal.until(words)
        await terminal.resize(30, 30)
        go_on.set()
        screen = await terminal.until("still")
        said = " ".join(screen[screen.index("First.") :].split())
        assert said.startswith(f"First. {words} still")


@pytest.mark.parametrize(("arguments", "term"), [("chat --plain", "xterm"), ("chat", "dumb")])
async def test_a_plain_terminal_gets_lines_and_no_escape(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp, arguments: str, term: str
) -> None:
    scripted_http.script([head(), chunk(delta(content="**so** far")), Fault.HANG], chat("- and on"))
    async with hermes(tmp_path, home, arguments, TERM=term) as terminal:
        await terminal.until("\n>")
        await terminal.enter("talk")
        await terminal.until("**so** far")
        await terminal.press("C-c")
        await terminal.until("Stopped; what was said is kept.\n>")
        await terminal.enter("go \\")
        await terminal.until("...")
        await terminal.enter("on")
        await terminal.until("- and on\n>")
        assert (await asked(scripted_http, 2))[-1] == ("user", "go \non")
        assert "\x1b" not in await terminal.screen(all_rows=True, styles=True)
        await terminal.press("C-c")
        await terminal.until("Ctrl-D or /quit leaves.")
        await terminal.press("C-d")
        await terminal.until("[exit 0]")


async def test_no_color_is_obeyed(tmp_path: Path, home: Path, scripted_http: ScriptedHttp) -> None:
    scripted_http.script(chat("`code` and\n\n```python\nimport os\n```\n"))
    async with hermes(tmp_path, home, "chat -q hi", NO_COLOR="1") as terminal:
        await terminal.until("[exit 0]")
        styled = await terminal.screen(styles=True)
        assert "import" in styled
        assert re.findall(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|[39][0-7]|38;|48;)m", styled) == []


async def test_one_question_at_a_terminal_is_drawn(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    scripted_http.script(chat(*_DOCUMENT))
    async with hermes(tmp_path, home, "chat -q hi") as terminal:
        screen = await terminal.until("[exit 0]")
        assert screen.startswith(f"{_DRAWN}\n[exit 0]")


async def test_notes_go_to_a_file_where_standard_error_is_one(
    tmp_path: Path, home: Path, scripted_http: ScriptedHttp
) -> None:
    notes = tmp_path / "notes"
    scripted_http.script(stream(*tool_call("echo out")), chat("Done.", finish="length"))
    async with hermes(tmp_path, home, f"chat -q hi 2>{notes}") as terminal:
        screen = await terminal.until("[exit 3]")
        assert screen.startswith("Done.\n[exit 3]")
        said = notes.read_text().split("\n")
        assert said[0].startswith("● terminal echo out  ")
        assert said[1].startswith("Cut short: ")
