"""A turn with everything in it, and short ways to talk to a session store."""

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
from hermes.sessions import Session, SessionStore

TURN = (
    text_message("user", "Read the file, please."),
    Message(
        role="assistant",
        id="msg_1",
        parts=(
            ReasoningPart(text="I need the file.", signature="s1", opaque="o1", origin="a"),
            TextPart(text="Reading."),
            ToolCall(id="call_1", name="read_file", arguments='{"path": "a.txt"'),
        ),
    ),
    Message(
        role="tool",
        parts=(
            ToolResult(
                call_id="call_1",
                name="read_file",
                text="no such file",
                is_error=True,
                stored_as="r1",
                images=(ImagePart(url="data:image/png;base64,AA==", detail="low"),),
            ),
        ),
    ),
    text_message("assistant", "There is no such file."),
)
COST = Usage(input=10, cached_input=4, output=6, reasoning=2)


async def new(store: SessionStore, session_id: str = "", **fields: object) -> Session:
    return await store.create(Session(id=session_id, source="cli", **fields))  # type: ignore[arg-type]


async def say(store: SessionStore, session_id: str, *texts: str) -> int:
    said = [text_message("user", text) for text in texts]
    return await store.append_turn(session_id, said, usage=Usage())
