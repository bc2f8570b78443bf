"""What is said beside an answer, and what typed keys come to."""

import pytest

from hermes.agent.runtime import AgentRuntime
from hermes.errors import ConfigError, HermesError, ProviderStatusError, SessionError, TurnError
from hermes.events import Retrying, ToolFinished, ToolOutcomes, TurnResult, TurnStatus
from hermes.hermes_cli.terminal import slash, wording
from hermes.hermes_cli.terminal.conversation import Conversation
from hermes.hermes_cli.terminal.keys import Keys
from hermes.messages import ToolCall, ToolResult, Usage, text_message
from hermes.sessions.memory import MemorySessionStore
from hermes.sessions.model import Session


def result(
    status: TurnStatus, text: str = "", error: HermesError | None = None, **tools: int
) -> TurnResult:
    return TurnResult(
        status=status,
        text=text,
        messages=(),
        usage=Usage(),
        error=error,
        tools=ToolOutcomes(**tools),
    )


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (result("completed", "words"), ""),
        (result("completed", "words", attempted=2, succeeded=1, failed=1), ""),
        (
            result("completed", "words", attempted=2, failed=2),
            "Note: no tool call of this turn succeeded.",
        ),
        (
            result("truncated", "words", TurnError("The turn used its 9 steps.")),
            "Cut short: The turn used its 9 steps.",
        ),
        (result("cancelled"), "Stopped."),
        (result("cancelled", "words"), "Stopped; what was said is kept."),
        (result("failed", "", ConfigError("No key is set")), "Error: No key is set."),
        (
            result("failed", "half", ConfigError("It broke.")),
            "Error: It broke. The answer above is not whole.",
        ),
    ],
)
def test_an_end_is_told_as_it_was(ended: TurnResult, said: str) -> None:
    assert wording.ending(ended) == said


def test_an_error_says_the_next_step_and_no_secret() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    refused = ProviderStatusError(f"bad key {key}\nmore", status=401, code="authentication")
    said = wording.error(refused)
    assert key not in said
    assert "\n" not in said
    assert said.endswith("`hermes config show` says where it is read from.")


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.04, "0.0 s"), (0.34, "0.3 s"), (9.96, "10.0 s"), (12.4, "12 s"), (125.0, "2 min 5 s")],
)
def test_durations_read_as_people_write_them(value: float, said: str) -> None:
    assert wording.seconds(value) == said


def test_a_tool_is_named_by_what_it_works_on() -> None:
    assert wording.subject({"timeout": 3, "command": "ls\n  -la \x1b[2J"}) == "ls -la [2J"
    assert wording.subject({"zone": "UTC"}) == '{"zone":"UTC"}'
    assert wording.subject({}) == ""
    assert len(wording.subject({"path": "x" * 500})) == 70


def test_a_failed_tool_is_told_by_its_first_line() -> None:
    call = ToolCall(id="c", name="terminal", arguments="{}")
    failed = ToolResult(call_id="c", name="terminal", text="\nno such file\nmore", is_error=True)
    fine = ToolResult(call_id="c", name="terminal", text="fine")
    assert wording.failure(ToolFinished(call=call, result=failed, seconds=1)) == "no such file"
    assert wording.failure(ToolFinished(call=call, result=fine, seconds=1)) == ""


def test_a_retry_says_why_where_and_when() -> None:
    event = Retrying(attempt=1, delay=2.0, code="overloaded", message="busy", endpoint="other")
    assert wording.retrying(event) == "busy. Trying again at other in 2.0 s."


def typed(*pieces: str) -> tuple[str, list[str]]:
    lines: list[str] = []
    keys = Keys(lambda _: None, lines.append)
    for piece in pieces:
        keys.type(piece)
    return keys.text, lines


@pytest.mark.parametrize(
    ("pieces", "left", "lines"),
    [
        (("ab", "c"), "abc", []),
        (("ab\x7fc\r",), "", ["ac"]),
        (("\r", " \n"), "", []),
        (("gone\x15kept",), "kept", []),
        (("one\ntwo\r", "three"), "three", ["one\ntwo"]),
        (("\x1b[A\x1bOPx\x1b[1;5C",), "x", []),
        (("漢字\x7f",), "漢", []),
    ],
)
def test_keys_make_lines(pieces: tuple[str, ...], left: str, lines: list[str]) -> None:
    assert typed(*pieces) == (left, lines)


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (3.0, "just now"),
        (61.0, "1 minute ago"),
        (7_300.0, "2 hours ago"),
        (86_400.0 * 3, "3 days ago"),
    ],
)
def test_an_age_is_told_roughly(age: float, said: str) -> None:
    assert slash.ago(age) == said


async def talk(tmp_path: object) -> tuple[Conversation, MemorySessionStore]:
    store = MemorySessionStore()
    runtime = AgentRuntime(store=store, workdir=tmp_path, results=tmp_path)  # type: ignore[arg-type]
    return Conversation(runtime, {"model": "m", "provider": "custom"}), store


@pytest.mark.asyncio
async def test_a_session_is_found_by_the_beginning_of_its_id_if_it_is_the_only_one(
    tmp_path: object,
) -> None:
    conversation, store = await talk(tmp_path)
    for name in ("ses_aaaa1", "ses_aaaa2", "ses_bbbb1"):
        await store.create(Session(id=name, source="cli"))
    assert (await conversation.resume("ses_bbbb")).id == "ses_bbbb1"
    assert (await conversation.resume("bbbb")).id == conversation.session_id == "ses_bbbb1"
    for wanted, code in (("aaaa", "session_ambiguous"), ("ses", "session_not_found")):
        with pytest.raises(SessionError) as failed:
            await conversation.resume(wanted)
        assert failed.value.code == code


@pytest.mark.asyncio
async def test_the_last_exchange_is_the_last_question_with_all_of_its_answer(
    tmp_path: object,
) -> None:
    conversation, store = await talk(tmp_path)
    session = await store.create(Session(id="ses_1", source="cli"))
    assert (await conversation.resume("last")).id == session.id
    assert await conversation.last_exchange() is None
    said = [("user", "old"), ("assistant", "older"), ("user", "new")]
    said += [("assistant", "one"), ("assistant", "two")]
    messages = [text_message(role, text) for role, text in said]  # type: ignore[arg-type]
    await store.append_turn("ses_1", messages, usage=Usage())
    exchange = await conversation.last_exchange()
    assert exchange is not None
    assert (exchange.question, exchange.answer) == ("new", "one\n\ntwo")


@pytest.mark.asyncio
async def test_a_path_is_a_message_and_an_unknown_command_is_not(tmp_path: object) -> None:
    conversation, _ = await talk(tmp_path)
    assert await slash.run("/etc/hosts says what?", conversation) is None
    unknown = await slash.run("/nope", conversation)
    assert unknown is not None
    assert unknown.text == "There is no command /nope; /help lists them."
