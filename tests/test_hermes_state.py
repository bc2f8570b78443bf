"""The synchronous facade: dicts of the OpenAI shape over a session store."""

import asyncio
import threading

import pytest

from hermes.errors import SessionError
from hermes.hermes_state import SessionDB
from hermes.messages import (
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
    text_message,
)
from hermes.sessions import MemorySessionStore


@pytest.fixture(params=["memory", "sqlite"])
def db(request, tmp_path):
    opened = (
        SessionDB(MemorySessionStore())
        if request.param == "memory"
        else SessionDB.open(tmp_path / "hermes.db")
    )
    yield opened
    opened.close()


def test_a_session_is_made_found_changed_listed_and_removed(db):
    made = db.create_session("s", "cli", title="Talk", model="m", system_prompt="Be brief.")
    assert db.get_session("s") == made
    assert (made["id"], made["source"], made["title"]) == ("s", "cli", "Talk")
    assert (made["message_count"], made["ended_at"], made["user_id"]) == (0, None, None)

    assert db.set_session_title("s", "New")["title"] == "New"
    assert db.end_session("s", "done")["end_reason"] == "done"
    db.create_session("t")
    assert [session["id"] for session in db.list_sessions()] == ["t", "s"]
    assert [session["id"] for session in db.list_sessions(source="cli")] == ["s"]
    assert db.delete_session("s") is True
    assert db.get_session("s") is None


def test_usage_and_counts_have_the_names_of_the_http_surface(db):
    db.create_session("s")
    usage = Usage(input=5, cached_input=1, output=3, reasoning=2)
    assert db.append_messages("s", [text_message("user", "find me")], usage=usage) == 1

    session = db.get_session("s")

    assert session is not None
    tokens = ("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens")
    assert [session[name] for name in tokens] == [5, 1, 3, 2]
    assert (session["message_count"], session["preview"]) == (1, "find me")
    assert [hit.snippet for hit in db.search_messages("find")] == ["**find** me"]


def test_a_conversation_is_a_list_of_chat_completions_messages(db):
    db.create_session("s")
    db.append_messages(
        "s",
        [
            Message(
                role="user",
                parts=(
                    TextPart(text="What is this?"),
                    ImagePart(url="https://x/y.png", detail="low"),
                    ImagePart(url="https://x/z.png"),
                ),
            ),
            Message(
                role="assistant",
                parts=(
                    ReasoningPart(text="Look."),
                    ToolCall(id="a", name="look", arguments="{}"),
                    ToolCall(id="b", name="look", arguments='{"n": 1}'),
                ),
            ),
            Message(
                role="tool",
                parts=(
                    ToolResult(call_id="a", name="look", text="a cat"),
                    ToolResult(call_id="b", name="look", text="no", is_error=True),
                ),
            ),
            text_message("assistant", "A cat."),
            Message(role="assistant", parts=()),
        ],
    )

    assert db.get_messages_as_conversation("s") == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://x/z.png"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {
                    "id": "b",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"n": 1}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "a", "name": "look", "content": "a cat"},
        {"role": "tool", "tool_call_id": "b", "name": "look", "content": "no"},
        {"role": "assistant", "content": "A cat."},
        {"role": "assistant", "content": ""},
    ]


def test_an_unknown_session_has_no_conversation_and_cannot_be_changed(db):
    assert db.get_messages_as_conversation("nobody") == []
    with pytest.raises(SessionError) as refused:
        db.set_session_title("nobody", "x")
    assert refused.value.code == "session_not_found"


def test_several_threads_can_use_it_at_once(db):
    db.create_session("s")
    threads = [
        threading.Thread(target=db.append_messages, args=("s", [text_message("user", str(n))]))
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    said = {entry["content"] for entry in db.get_messages_as_conversation("s")}
    assert said == {str(number) for number in range(16)}


@pytest.mark.asyncio
async def test_a_call_on_the_event_loops_thread_is_refused_and_one_beside_it_works():
    db = SessionDB(MemorySessionStore())

    with pytest.raises(RuntimeError, match="another thread"):
        db.get_session("s")

    assert await asyncio.to_thread(db.get_session, "s") is None
