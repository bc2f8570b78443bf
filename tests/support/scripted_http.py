"""A scripted provider over real HTTP on loopback: exact bytes, exact cuts, every fault.

An answer is a list of steps, taken in order: ``bytes`` are sent as they stand, an
``asyncio.Event`` is waited for, a ``Fault`` does what its name says. It knows no schema.
"""

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

LIMIT = 20.0
"""Seconds that any wait of a test may take."""


class Fault(Enum):
    """What a server can do to a connection."""

    RESET = auto()  # RST
    CLOSE = auto()  # FIN
    HANG = auto()  # say nothing more until the client hangs up


Step: TypeAlias = bytes | asyncio.Event | Fault
Answer: TypeAlias = Sequence[Step]


@dataclass(eq=False)
class Request:
    """What the server received, and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    peer: tuple[str, int]
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class ScriptedHttp:
    """The server; use it as an async context manager.

    Answers of ``script`` are used up in order, then ``default`` makes them; without either a
    request gets a 500.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.default: Callable[[Request], Answer] | None = None
        self.connections = 0
        self.open: set[_Connection] = set()
        self._answers: deque[Answer] = deque()
        self._arrival = asyncio.Event()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self.open):
            connection.abort()
        await wait_until(lambda: not self.open)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *answers: Answer) -> None:
        """Queue answers, one a request."""
        self._answers.extend(answers)

    async def request(self, number: int) -> Request:
        """Wait for the request of this number, counted from 1."""
        async with asyncio.timeout(LIMIT):
            while len(self.requests) < number:
                self._arrival.clear()
                await self._arrival.wait()
        return self.requests[number - 1]

    def _take(self, request: Request) -> Answer:
        self.requests.append(request)
        self._arrival.set()
        if self._answers:
            return self._answers.popleft()
        if self.default is not None:
            return self.default(request)
        return error(500, "no answer was scripted")


class _Connection(asyncio.Protocol):
    def __init__(self, server: ScriptedHttp) -> None:
        self._server = server
        self._buffer = b""
        self._request: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of the standard library's.
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server.connections += 1
        self._server.open.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def eof_received(self) -> bool:
        self._hang_up()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._hang_up()
        self._writable.set()
        self._server.open.discard(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _hang_up(self) -> None:
        if self._request is not None:
            self._request.hung_up.set()

    def _next(self) -> None:
        if self._request is not None or self._transport is None:
            return
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
        if headers.get("transfer-encoding") == "chunked":
            raise AssertionError("the client sent a chunked body")
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        method, path, _ = line.split(" ")
        self._buffer = rest[length:]
        peer = self._transport.get_extra_info("peername")
        self._request = Request(method, path, headers, rest[:length], peer)
        answer = self._server._take(self._request)
        self._task = asyncio.get_running_loop().create_task(self._answer(self._request, answer))

    async def _answer(self, request: Request, answer: Answer) -> None:
        assert self._transport is not None
        for step in answer:
            if isinstance(step, bytes):
                self._transport.write(step)
                await self._writable.wait()
            elif isinstance(step, asyncio.Event):
                await step.wait()
            elif step is Fault.HANG:
                await request.hung_up.wait()
            else:
                self._break(step)
                return
        request.answered.set()
        self._request = self._task = None
        self._next()

    def _break(self, fault: Fault) -> None:
        assert self._transport is not None
        if fault is Fault.RESET:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.close()


async def wait_until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until ``condition`` holds; a test fails after ``LIMIT`` seconds."""
    async with asyncio.timeout(LIMIT):
        while not condition():  # noqa: ASYNC110 - conditions of foreign objects have no event
            await asyncio.sleep(0)


def head(
    status: int = 200,
    content_type: str = "text/event-stream",
    *,
    length: int | None = None,
    **headers: str,
) -> bytes:
    """The head of an answer: chunked unless a length is given."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    kind = f"Content-Type: {content_type}\r\n" if content_type else ""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Status\r\n{kind}{size}\r\n{more}\r\n".encode()


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


LAST = b"0\r\n\r\n"
"""The end of a chunked body."""


def body(
    data: bytes, status: int = 200, content_type: str = "application/json", **h: str
) -> Answer:
    """A whole answer with a length."""
    return [head(status, content_type, length=len(data), **h) + data]


def whole(value: object, **headers: str) -> Answer:
    """A whole JSON answer."""
    return body(json.dumps(value).encode(), **headers)


def error(status: int, message: str, **headers: str) -> Answer:
    """An HTTP error in OpenAI's shape."""
    value = {"error": {"message": message}}
    return body(json.dumps(value).encode(), status, **headers)


def stream(*pieces: bytes, **headers: str) -> Answer:
    """A 200 event stream, each piece a chunk of its own, ended properly."""
    return [head(**headers), *(chunk(piece) for piece in pieces), LAST]


def data(value: object) -> bytes:
    """One event with a JSON payload."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def named(event: str, value: object) -> bytes:
    """One named event with a JSON payload."""
    return b"event: " + event.encode() + b"\n" + data(value)


DONE = b"data: [DONE]\n\n"


def delta(model: str = "m", finish: str | None = None, **fields: object) -> bytes:
    """A chat-completions chunk with this delta."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return data({"id": "c", "model": model, "choices": [choice]})


def usage(prompt: int = 7, completion: int = 3) -> bytes:
    """The usage chunk of a chat stream."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return data({"id": "c", "model": "m", "choices": [], "usage": counts})


def chat(*texts: str, finish: str = "stop") -> Answer:
    """A proper chat stream of these texts."""
    return stream(*chat_events(texts, finish))


def chat_events(texts: Iterable[str], finish: str = "stop") -> list[bytes]:
    """The events of a proper chat stream."""
    return [*(delta(content=text) for text in texts), delta(finish=finish), usage(), DONE]


def anthropic_events(text: str, stop: str = "end_turn") -> list[bytes]:
    """The events of a proper Anthropic stream."""
    message = {"id": "msg", "model": "claude", "role": "assistant", "content": []}
    message |= {"usage": {"input_tokens": 7, "output_tokens": 1}}
    block = {"type": "text", "text": ""}
    piece = {"type": "text_delta", "text": text}
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 3}}
    return [
        named("message_start", {"type": "message_start", "message": message}),
        named(
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": block},
        ),
        named("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": piece}),
        named("content_block_stop", {"type": "content_block_stop", "index": 0}),
        named("message_delta", end),
        named("message_stop", {"type": "message_stop"}),
    ]


def responses_events(text: str) -> list[bytes]:
    """The events of a proper Responses stream."""
    item = {"type": "message", "id": "msg", "role": "assistant"}
    part = {"type": "output_text", "text": text, "annotations": []}
    counts = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    final = {"id": "resp", "model": "m", "status": "completed", "usage": counts}
    final |= {"output": [item | {"content": [part], "status": "completed"}]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"content": []}},
        {
            "type": "response.output_text.delta",
            "item_id": "msg",
            "output_index": 0,
            "content_index": 0,
            "delta": text,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": final["output"][0]},
        {"type": "response.completed", "response": final},
    ]
    return [
        named(event["type"], event | {"sequence_number": number})
        for number, event in enumerate(events)
    ]
