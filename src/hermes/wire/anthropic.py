"""Anthropic Messages: answers to deltas, streamed and whole.

Requests are in ``anthropic_request``; no I/O. Blocks of tools that the endpoint itself runs are
passed over.
"""

from dataclasses import dataclass
from typing import Any

from hermes.errors import ProviderProtocolError
from hermes.events import Delta, ToolCallDelta
from hermes.ids import new_call_id
from hermes.sse import Decoder, Event
from hermes.wire.anthropic_request import encode_request
from hermes.wire.jsonvalue import as_index, as_list, as_object, as_text, dump, parse
from hermes.wire.stream import StreamDecoderBase, finish_reason
from hermes.wire.usage import merge_anthropic_usage

__all__ = ["StreamDecoder", "decode_answer", "encode_request"]


@dataclass(slots=True)
class _Block:
    """A content block under way, kept by the index that the endpoint gave it."""

    kind: str
    call: int = -1
    has_arguments: bool = False
    given: str = ""
    signature: str = ""


class StreamDecoder(StreamDecoderBase):
    """The deltas of one message."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self._blocks: dict[int, _Block] = {}
        self._calls = 0

    def take_answer(self, answer: dict[str, Any]) -> list[Delta]:
        """Return the deltas of a whole message. Raises as ``decode_answer``."""
        if "content" not in answer:
            self._raise_if_error(answer)
            raise ProviderProtocolError("The endpoint's answer has no content.")
        self._start(answer)
        for index, block in enumerate(as_list(answer["content"])):
            self._open(index, as_object(block))
            self._close(index)
        self._take_stop(as_text(answer.get("stop_reason")))
        self.done = True
        return self.finish()

    def finish(self) -> list[Delta]:
        """See the base; blocks that were never closed are closed first."""
        if self._failure is None and not self._closed:
            for index in list(self._blocks):
                self._close(index)
        return super().finish()

    def _take(self, event: Event) -> None:
        data = event.data if event.data[:1] == b"{" else event.data.strip()
        if data[:1] != b"{":
            self._take_bare(event.event, data)
            return
        value = as_object(parse(data))
        kind = value.get("type")
        if kind == "content_block_delta":
            self._take_delta(as_index(value.get("index")), as_object(value.get("delta")))
        elif kind == "content_block_start":
            self._open(as_index(value.get("index")), as_object(value.get("content_block")))
        elif kind == "content_block_stop":
            self._close(as_index(value.get("index")))
        elif kind == "message_start":
            self._start(as_object(value.get("message")))
        elif kind == "message_delta":
            self._usage = merge_anthropic_usage(self._usage, as_object(value.get("usage")))
            self._take_stop(as_text(as_object(value.get("delta")).get("stop_reason")))
        elif kind == "message_stop":
            self.done = True
        elif kind != "ping":
            self._raise_if_error(value, named=event.event == "error")

    def _take_bare(self, name: str, data: bytes) -> None:
        if data == b"[DONE]":
            self.done = True
        elif name == "error":
            self._raise_if_error(data.decode("utf-8", "replace"), named=True)

    def _start(self, message: dict[str, Any]) -> None:
        self._model = as_text(message.get("model")) or self._model
        self._usage = merge_anthropic_usage(self._usage, as_object(message.get("usage")))

    def _take_stop(self, word: str) -> None:
        if word:
            self._reason = finish_reason(word)

    def _open(self, index: int, content: dict[str, Any]) -> None:
        kind = as_text(content.get("type"))
        block = _Block(kind=kind)
        self._blocks[index] = block
        if kind == "text":
            self._batch.text(as_text(content.get("text")))
        elif kind == "thinking":
            self._batch.reasoning(as_text(content.get("thinking")))
            block.signature = as_text(content.get("signature"))
        elif kind == "redacted_thinking":
            self._batch.proof(opaque=as_text(content.get("data")))
        elif kind == "tool_use":
            block.call, self._calls = self._calls, self._calls + 1
            block.given = dump(content.get("input") or {})
            self._batch.call(
                ToolCallDelta(
                    index=block.call,
                    id=as_text(content.get("id")) or new_call_id(),
                    name=as_text(content.get("name")),
                )
            )

    def _take_delta(self, index: int, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            self._batch.text(as_text(delta.get("text")))
        elif kind == "thinking_delta":
            self._batch.reasoning(as_text(delta.get("thinking")))
        elif kind == "signature_delta":
            block = self._blocks.setdefault(index, _Block(kind="thinking"))
            block.signature += as_text(delta.get("signature"))
        elif kind == "input_json_delta":
            self._take_arguments(self._blocks.get(index), as_text(delta.get("partial_json")))

    def _take_arguments(self, block: _Block | None, piece: str) -> None:
        if block is None:
            raise ProviderProtocolError(
                "The endpoint sent arguments of a call that it never began."
            )
        if block.call >= 0 and piece:
            block.has_arguments = True
            self._batch.call(ToolCallDelta(index=block.call, arguments=piece))

    def _close(self, index: int) -> None:
        block = self._blocks.pop(index, None)
        if block is None:
            return
        if block.call >= 0 and not block.has_arguments:
            self._batch.call(ToolCallDelta(index=block.call, arguments=block.given))
        if block.signature:
            self._batch.proof(signature=block.signature)


def decode_answer(body: bytes, origin: str) -> list[Delta]:
    """Return the deltas of a whole answer; the last one is its ``Finish``.

    Raises:
        ProviderStatusError: the body is an error, whatever its HTTP status.
        ProviderProtocolError: the body is not a message.
    """
    decoder = StreamDecoder(origin)
    if body.lstrip()[:5] in (b"data:", b"event"):  # Some servers stream whatever was asked.
        return decoder.take_events(Decoder().feed(body + b"\n\n"))
    return decoder.take_answer(as_object(parse(body)))
