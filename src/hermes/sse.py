"""Server-sent events over raw bytes: a decoder and an encoder by the WHATWG rules.

No I/O, no reconnecting and no JSON: who reads bytes feeds them, who has a payload encodes it.
https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from hermes.errors import HermesError

MAX_EVENT_BYTES = 16 * 2**20
"""Longest event that a decoder takes unless told otherwise."""

MAX_LINE_BYTES = 64 * 1024 - 1
"""Longest line that ``encode`` produces, without its line end: aiohttp readers refuse more."""

MAX_TEXT_CHARS = 10_000
"""Characters of text whose JSON, escaped at worst, still fits a line beside its envelope."""

_LINE_END = re.compile(rb"\r\n|\r|\n")
_RETRY_DIGITS = 18
_BOM = b"\xef\xbb\xbf"


class EventTooLargeError(HermesError):
    """An event or a line of it is longer than its limit."""

    code = "event_too_large"


class Event(NamedTuple):
    """One dispatched event.

    A named tuple and no dataclass: a provider's stream makes one for each token, and the
    frozen dataclass costs five times as much to make.

    ``event`` is ``message`` when the sender named none. ``id`` is the last id seen so far.
    ``retry`` is a reconnection time in milliseconds, set when this event or a data-less block
    before it brought one. ``comment`` is the last comment inside the event's own block: the
    rules ignore it, yet one provider writes its HTTP status there.
    """

    event: str
    data: bytes
    id: str = ""
    retry: int | None = None
    comment: str = ""

    @property
    def text(self) -> str:
        """The data as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace")


# Skips the argument handling of ``Event(...)``, which costs more than all else of an event.
_make = cast(
    "Callable[[type[Event], tuple[Any, ...]], Event]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


class _Block(NamedTuple):
    """The fields of one block as they stand; ``None`` where a field did not occur."""

    event: str
    data: bytes | None
    id: str | None
    retry: int | None
    comment: str


def _parse_block(block: bytes) -> _Block:
    event, comment = "", ""
    data: list[bytes] = []
    last_id: str | None = None
    retry: int | None = None
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace")
        elif not name:
            comment = value.decode("utf-8", "replace") if line else comment
        elif name == b"id" and b"\0" not in value:
            last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            retry = int(value)
    return _Block(event, b"\n".join(data) if data else None, last_id, retry, comment)


class Decoder:
    """Turns a byte stream, cut anywhere, into events.

    Memory stays within ``max_event_bytes`` and the chunk at hand. An event beyond the limit
    fails the stream: the events before it are still returned, then every call raises.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._buffer = bytearray()
        self._at_start = True
        self._after_cr = False
        self._too_large = False
        self._last_id = ""
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that ``chunk`` completes.

        Raises:
            EventTooLargeError: an event is longer than the limit; the stream is of no more use.
        """
        if self._too_large:
            self._refuse()
        if self._at_start:
            chunk = self._skip_bom(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._normalise(chunk)
        if not chunk:
            return []
        complete = self._complete(chunk)
        events = self._dispatch(complete) if complete else []
        # One byte more than the limit may be the first half of the blank line that ends it.
        if len(self._buffer) > self._limit + 1:
            self._too_large = True
        if self._too_large:
            self._buffer.clear()
            if not events:
                self._refuse()
        return events

    def pending(self) -> Event | None:
        """Return the last event as if the missing blank line had come, or ``None``.

        The rules drop an unterminated event; some providers end their stream with one.

        Raises:
            EventTooLargeError: as ``feed``.
        """
        if self._too_large:
            self._refuse()
        block = _parse_block(bytes(self._buffer))
        if block.data is None:
            return None
        return Event(
            block.event or "message",
            block.data,
            self._last_id if block.id is None else block.id,
            self._retry if block.retry is None else block.retry,
            block.comment,
        )

    @property
    def leftover(self) -> bytes:
        """The bytes behind the last whole event: a JSON body that came under the wrong type."""
        return bytes(self._buffer)

    def _refuse(self) -> None:
        raise EventTooLargeError(f"An event is longer than {self._limit} bytes.")

    def _skip_bom(self, chunk: bytes) -> bytes:
        head = bytes(self._buffer) + chunk
        self._buffer.clear()
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._buffer += head
            return b""
        self._at_start = False
        return head.removeprefix(_BOM)

    def _normalise(self, chunk: bytes) -> bytes:
        """Return ``chunk`` with every line end as LF; a CR LF pair may be cut in two."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _complete(self, chunk: bytes) -> bytes:
        """Return what ends with a blank line and keep the rest, searching no byte twice."""
        buffer = self._buffer
        end = chunk.rfind(b"\n\n") + 2
        if end == 1:  # not found
            end = 1 if buffer.endswith(b"\n") and chunk.startswith(b"\n") else 0
        complete = bytes(buffer) + chunk[:end] if end and buffer else chunk[:end]
        if end:
            buffer.clear()
        if not buffer and chunk.startswith(b"\n", end):
            end += 1  # a blank line of its own
        buffer += chunk[end : end + self._limit + 2 - len(buffer)]
        return complete

    def _dispatch(self, complete: bytes) -> list[Event]:
        if self._retry is None and len(complete) <= self._limit and complete[:6] == b"data: ":
            plain = complete[6:-2].split(b"\n\ndata: ")
            if complete.count(b"\n") == 2 * len(plain):
                last_id = self._last_id
                return [_make(Event, ("message", data, last_id, None, "")) for data in plain]
        events: list[Event] = []
        for block in complete.split(b"\n\n"):
            if len(block.lstrip(b"\n")) > self._limit:
                self._too_large = True
                break
            if block:
                self._take_block(block, events)
        return events

    def _take_block(self, raw: bytes, events: list[Event]) -> None:
        if raw[:7] == b"event: " and self._retry is None:  # the usual shape of a named event
            head, _, data = raw.partition(b"\n")
            if data[:6] == b"data: " and b"\n" not in data and len(head) > 7:
                name = head[7:].decode("utf-8", "replace")
                events.append(_make(Event, (name, data[6:], self._last_id, None, "")))
                return
        block = _parse_block(raw)
        if block.id is not None:
            self._last_id = block.id
        if block.retry is not None:
            self._retry = block.retry
        if block.data is not None:
            name = block.event or "message"
            events.append(Event(name, block.data, self._last_id, self._retry, block.comment))
            self._retry = None


def encode(
    data: bytes | str,
    *,
    event: str = "",
    id: str = "",  # noqa: A002 - the name of the field in the specification
    max_line_bytes: int = MAX_LINE_BYTES,
) -> bytes:
    """Return the bytes of one event.

    ``data`` is split at CR, LF and CRLF only; the receiver sees each of them as LF. A value on
    one line, such as JSON, cannot be split without changing it, so a line that would be longer
    than ``max_line_bytes`` is refused: the sender shortens or divides its payload first
    (``split_text``).

    Raises:
        EventTooLargeError: a line would be longer than ``max_line_bytes``.
        ValueError: ``event`` or ``id`` holds a line end or a NUL.
    """
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    head = _field("event", event) + _field("id", id) if event or id else b""
    if b"\n" not in raw and b"\r" not in raw:
        lines = [b"data: " + raw]
    else:
        lines = [b"data: " + part for part in _LINE_END.split(raw)]
    if max(len(head), *map(len, lines), 0) > max_line_bytes:
        raise EventTooLargeError(f"A line of an event would be longer than {max_line_bytes} bytes.")
    return head + b"\n".join(lines) + b"\n\n"


def encode_comment(text: str = "") -> bytes:
    """Return a comment line with its blank line, which keeps a connection alive unseen."""
    return b": " + _LINE_END.sub(b" ", text.encode("utf-8", "replace")) + b"\n\n"


def split_text(text: str, max_chars: int = MAX_TEXT_CHARS) -> list[str]:
    """Return ``text`` in pieces that each fit one event as a JSON string; at least one piece."""
    if len(text) <= max_chars:
        return [text]
    return [text[start : start + max_chars] for start in range(0, len(text), max_chars)]


def _field(name: str, value: str) -> bytes:
    if not value:
        return b""
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"An SSE {name} cannot hold a line end or a NUL.")
    return f"{name}: {value}\n".encode()
