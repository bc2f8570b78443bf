"""OpenAI Responses: answers to deltas, streamed and whole.

Requests are in ``responses_request``; no I/O. ``responses_items`` puts the answer together.
"""

from typing import Any

from hermes.errors import ProviderProtocolError, ProviderStatusError
from hermes.events import Delta
from hermes.sse import Decoder, Event
from hermes.wire.failures import event_error
from hermes.wire.jsonvalue import as_index, as_list, as_object, as_text, parse
from hermes.wire.responses_items import OutputItems
from hermes.wire.responses_request import encode_request
from hermes.wire.stream import FINISH_REASONS, StreamDecoderBase
from hermes.wire.usage import responses_usage

__all__ = ["StreamDecoder", "decode_answer", "encode_request"]

_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_TEXT_DONE = frozenset({"response.output_text.done", "response.refusal.done"})
_REASONING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.done"})
_FAILURES = frozenset({"response.failed", "response.cancelled", "error"})


class StreamDecoder(StreamDecoderBase):
    """The deltas of one response."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self._items = OutputItems(self._batch)

    def take_answer(self, answer: dict[str, Any]) -> list[Delta]:
        """Return the deltas of a whole response object. Raises as ``decode_answer``."""
        status = as_text(answer.get("status"))
        if status in ("failed", "cancelled"):
            raise self._failure_of(answer)
        if "output" not in answer:
            self._raise_if_error(answer)
            raise ProviderProtocolError("The endpoint's answer has no output.")
        self._take_end(answer)
        return self.finish()

    def _take(self, event: Event) -> None:
        data = event.data if event.data[:1] == b"{" else event.data.strip()
        if data[:1] != b"{":
            self._take_bare(event.event, data)
            return
        value = as_object(parse(data))
        kind = as_text(value.get("type")) or event.event
        if kind in _TEXT:
            item = self._items.of(value, "message")
            self._items.text(
                item, as_index(value.get("content_index")), as_text(value.get("delta"))
            )
        elif kind in _REASONING:
            item = self._items.of(value, "reasoning")
            self._items.reasoning(
                item, as_index(value.get("summary_index")), as_text(value.get("delta"))
            )
        elif kind == "response.function_call_arguments.delta":
            item = self._items.of(value, "function_call")
            self._items.arguments(item, as_text(value.get("delta")))
        else:
            self._take_other(kind, value)

    def _take_bare(self, name: str, data: bytes) -> None:
        if data == b"[DONE]":
            self.done = True
        elif name == "error":
            self._raise_if_error(data.decode("utf-8", "replace"), named=True)

    def _take_other(self, kind: str, value: dict[str, Any]) -> None:
        if kind in _ENDS:
            self._take_end(as_object(value.get("response")), cut=kind == "response.incomplete")
        elif kind in _FAILURES:
            raise self._failure_of(as_object(value.get("response")) or value)
        elif kind == "response.output_item.added":
            self._items.begin(value)
        elif kind == "response.output_item.done":
            content = as_object(value.get("item"))
            self._items.end(self._items.of(value, as_text(content.get("type"))), content)
        elif kind in _TEXT_DONE:
            item = self._items.of(value, "message")
            text = as_text(value.get("text")) or as_text(value.get("refusal"))
            self._items.whole_text(item, as_index(value.get("content_index")), text)
        elif kind == "response.function_call_arguments.done":
            item = self._items.of(value, "function_call")
            self._items.whole_arguments(item, value.get("arguments"))
        elif kind == "response.created":
            self._model = as_text(as_object(value.get("response")).get("model"))
        else:
            self._raise_if_error(value)

    def _take_end(self, response: dict[str, Any], *, cut: bool = False) -> None:
        self._model = as_text(response.get("model")) or self._model
        usage = as_object(response.get("usage"))
        if usage:
            self._usage = responses_usage(usage)
        self._items.end_all(as_list(response.get("output")))
        details = as_object(response.get("incomplete_details"))
        self._reason = "stop"
        if cut or details or response.get("status") == "incomplete":
            self._reason = FINISH_REASONS.get(as_text(details.get("reason")), "length")
        self.done = True

    def _failure_of(self, source: dict[str, Any]) -> ProviderStatusError:
        error = source.get("error")
        found = event_error({"error": error} if error else source, named=True)
        return found or ProviderStatusError("The endpoint failed.", status=500)


def decode_answer(body: bytes, origin: str) -> list[Delta]:
    """Return the deltas of a whole answer; the last one is its ``Finish``.

    Raises:
        ProviderStatusError: the body is an error, whatever its HTTP status.
        ProviderProtocolError: the body is not a response object.
    """
    decoder = StreamDecoder(origin)
    if body.lstrip()[:5] in (b"data:", b"event"):  # Some servers stream whatever was asked.
        return decoder.take_events(Decoder().feed(body + b"\n\n"))
    return decoder.take_answer(as_object(parse(body)))
