"""A turn's log as the event stream of a chat completion.

What runs the turn, and what becomes of it, is known only through its events and its result.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from hermes.agent.cancel import TurnControl
from hermes.errors import HermesError
from hermes.events import (
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEvent,
)
from hermes.gateway.platforms.api_server.bridge import Ending, StreamQueue, ending, failure
from hermes.gateway.platforms.api_server.chat_answer import answer_headers, usage_object
from hermes.gateway.platforms.api_server.errors import error_object, status_of
from hermes.gateway.platforms.api_server.host import Host
from hermes.gateway.platforms.api_server.middleware import stream_headers
from hermes.gateway.platforms.api_server.parse import ChatRequest
from hermes.redaction import redact

_log = logging.getLogger(__name__)

_LABEL_LENGTH = 80
_HOLD = 0.1
"""Seconds for which the opening chunk waits for the first words, to travel with them."""

_DONE = b"data: [DONE]\n\n"
_KEEPALIVE = b": keepalive\n\n"


class ChunkFrames:
    """Frames of one chat completion; everything but the delta is encoded once."""

    def __init__(self, completion_id: str, model: str, created: int, *, usage: bool) -> None:
        head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._head = b"data: " + orjson.dumps(head)[:-1]
        self._usage = b',"usage":null' if usage else b""
        self._open = self._head + self._usage + b',"choices":[{"index":0,"delta":'
        self._content = self._open + b'{"content":'
        self._reasoning = self._open + b'{"reasoning_content":'

    def role(self) -> bytes:
        """Return the first chunk."""
        return self._open + b'{"role":"assistant","content":""},"finish_reason":null}]}\n\n'

    def content(self, text: str) -> bytes:
        """Return a chunk with words of the answer."""
        return self._content + _dumps(text) + b'},"finish_reason":null}]}\n\n'

    def reasoning(self, text: str) -> bytes:
        """Return a chunk with words of the reasoning."""
        return self._reasoning + _dumps(text) + b'},"finish_reason":null}]}\n\n'

    def finish(self, end: Ending) -> bytes:
        """Return the chunk that says how the turn ended."""
        more: dict[str, Any] = {}
        if end.finish_reason != "stop":
            more["hermes"] = end.facts()
        if end.failed and end.error is not None:
            status = status_of(end.error)
            more["error"] = error_object(end.error.message, status=status, code=end.error.code)
        tail = b"," + orjson.dumps(more)[1:-1] if more else b""
        reason = orjson.dumps(end.finish_reason)
        return self._open + b'{},"finish_reason":' + reason + b"}]" + tail + b"}\n\n"

    def usage(self, end: Ending) -> bytes:
        """Return the trailing chunk with the turn's token counts."""
        usage = orjson.dumps(usage_object(end.usage))
        return self._head + b',"choices":[],"usage":' + usage + b"}\n\n"


def _dumps(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except orjson.JSONEncodeError:  # lone surrogates
        return orjson.dumps(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def tool_frame(event: ToolStarted | ToolFinished) -> bytes:
    """Return the named event that tells of a tool; its label is redacted and short."""
    call = event.call
    data: dict[str, Any] = {"tool": call.name, "toolCallId": call.id}
    if isinstance(event, ToolStarted):
        data |= {"label": _label(event), "status": "running"}
    else:
        data |= {
            "status": "completed",
            "error": event.result.is_error,
            "duration": round(event.seconds, 3),
        }
    return f"event: hermes.tool.progress\ndata: {json.dumps(data)}\n\n".encode()


def _label(event: ToolStarted) -> str:
    for value in event.arguments.values():
        if isinstance(value, str) and value.strip():
            line = " ".join(redact(value[: 8 * _LABEL_LENGTH]).split())
            return line[:_LABEL_LENGTH]
    return event.call.name


class ChatProjection:
    """Turns a batch of events into the bytes that this client is to see."""

    def __init__(self, frames: ChunkFrames, *, tools: bool, reasoning: bool) -> None:
        self._frames = frames
        self._tools = tools
        self._reasoning = reasoning
        self.wrote_text = False

    def render(self, events: Sequence[TurnEvent]) -> bytes:
        """Return the frames of ``events``; neighbouring text becomes one frame."""
        out: list[bytes] = []
        text: list[str] = []
        for event in events:
            if isinstance(event, TextDelta):
                text.append(event.text)
                continue
            frame = self._other(event)
            if frame:
                self._flush(text, out)
                out.append(frame)
        self._flush(text, out)
        return b"".join(out)

    def _flush(self, text: list[str], out: list[bytes]) -> None:
        if text:
            out.append(self._frames.content("".join(text)))
            text.clear()
            self.wrote_text = True

    def _other(self, event: TurnEvent) -> bytes:
        if isinstance(event, ToolStarted | ToolFinished):
            return tool_frame(event) if self._tools else b""
        if isinstance(event, ReasoningDelta) and self._reasoning and event.text:
            return self._frames.reasoning(event.text)
        return b""


class Pacer:
    """When the stream is to be written next: never later than needed, never more often than told.

    ``interval`` seconds pass between two frames of text; after ``keepalive`` seconds of silence a
    comment is due. One timer serves a whole stream.
    """

    def __init__(self, stream: StreamQueue, *, interval: float, keepalive: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._interval = interval
        self._keepalive = keepalive
        self._last = self._loop.time()
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._due = False

    def __enter__(self) -> "Pacer":
        self._timer = self._loop.call_later(min(_HOLD, self._keepalive), self._first_tick)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _first_tick(self) -> None:
        if self._next == 0.0:
            self._due = True
            self._stream.nudge()
        self._timer = self._loop.call_later(self._keepalive, self._tick)

    def _tick(self) -> None:
        left = self._last + self._keepalive - self._loop.time()
        if left <= 0.001:
            self._due = True
            self._stream.nudge()
            left = self._keepalive
        self._timer = self._loop.call_later(left, self._tick)

    async def wait(self, cursor: int) -> Sequence[TurnEvent] | None:
        """Return the events from ``cursor`` on, none for a keep-alive, None at the end."""
        while not self._due:
            if len(self._stream) > cursor:
                delay = self._next - self._loop.time()
                if delay > 0:
                    await self._stream.pause(delay)
                return self._stream.since(cursor)
            if self._stream.closed:
                return None
            await self._stream.changed(cursor)
        self._due = False
        return ()

    def wrote(self) -> None:
        """Note that bytes went out."""
        self._last = self._loop.time()
        self._next = self._last + self._interval
        self._due = False


class _EventStream(web.StreamResponse):
    # aiohttp's whole responses send headers and first bytes together; a stream may too. Where a
    # version lacks the switch, the headers go out on their own and nothing else changes.
    _send_headers_immediately = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningChat:
    """A chat completion whose turn runs in ``task`` and is stopped by ``control``."""

    chat: ChatRequest
    task: asyncio.Future[Any]
    control: TurnControl
    session_id: str


async def write_sse_chat_completion(
    host: Host,
    request: web.Request,
    completion_id: str,
    model: str,
    created: int,
    stream_q: StreamQueue,
    running: RunningChat,
) -> web.StreamResponse:
    """Write the turn as it happens, then how it ended, then ``[DONE]``.

    A client that goes away ends the turn at once.
    """
    chat = running.chat
    frames = ChunkFrames(completion_id, model, created, usage=chat.include_usage)
    projection = ChatProjection(frames, tools=_wants_tools(host, request), reasoning=chat.reasoning)
    headers = stream_headers(host, request)
    headers |= answer_headers(chat, running.session_id, None)
    response = _EventStream(headers=headers)
    try:
        await response.prepare(request)
        opening = await _follow(host, response, stream_q, projection, frames.role())
        end = await _ending(running.task)
        tail = _tail(frames, projection, end, usage=chat.include_usage)
        await response.write(b"".join((opening, *tail)))
        await response.write_eof()
    except ConnectionResetError:
        # The client has gone; nobody is left to tell.
        return response
    finally:
        running.control.cancel()
    return response


async def _follow(
    host: Host,
    response: web.StreamResponse,
    stream: StreamQueue,
    projection: ChatProjection,
    opening: bytes,
) -> bytes:
    """Write the turn's events until its end; return what of ``opening`` is still to be written."""
    cursor = 0
    with Pacer(stream, interval=host._coalesce, keepalive=host._keepalive) as pacer:
        while (events := await pacer.wait(cursor)) is not None:
            cursor += len(events)
            data = projection.render(events) if events else opening or _KEEPALIVE
            if not data:
                continue
            await response.write(data if data is opening else opening + data)
            opening = b""
            pacer.wrote()
    return opening


def _wants_tools(host: Host, request: web.Request) -> bool:
    if host._tool_progress == "events":
        return True
    return host._tool_progress == "opt_in" and any(
        name in request.headers for name in ("X-Hermes-Session-Id", "X-Hermes-Events")
    )


async def _ending(task: asyncio.Future[Any]) -> Ending:
    try:
        result, counts = await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
        return failure(asyncio.CancelledError())
    except HermesError as error:
        return failure(error)
    except Exception as error:  # noqa: BLE001 - the edge of a stream: its client gets the truth
        _log.exception("a chat stream's turn failed")
        return failure(error)
    return ending(result, counts)


def _tail(
    frames: ChunkFrames, projection: ChatProjection, end: Ending, *, usage: bool
) -> Iterable[bytes]:
    if end.text and not projection.wrote_text:
        yield frames.content(end.text)
    yield frames.finish(end)
    if usage:
        yield frames.usage(end)
    yield _DONE
