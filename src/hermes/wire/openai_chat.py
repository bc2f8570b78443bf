"""OpenAI Chat Completions: answers to deltas, streamed and whole, in every known dialect.

Requests are in ``chat_request``; no I/O, and no judgement of what the model said.
"""

from typing import Any

from hermes.errors import ProviderProtocolError
from hermes.events import Delta
from hermes.sse import Decoder, Event
from hermes.wire.chat_calls import CallAssembler
from hermes.wire.chat_request import encode_request
from hermes.wire.jsonvalue import as_list, as_object, as_text, dump, parse
from hermes.wire.stream import StreamDecoderBase, finish_reason
from hermes.wire.usage import chat_usage

__all__ = ["StreamDecoder", "decode_answer", "encode_request"]

_KEEP_ALIVE = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")


class StreamDecoder(StreamDecoderBase):
    """The deltas of one chat completion."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self._calls = CallAssembler()
        self._is_known = False  # a chunk that may name the model was seen

    def take_answer(self, answer: dict[str, Any]) -> list[Delta]:
        """Return the deltas of a whole chat completion. Raises as ``decode_answer``."""
        if not as_list(answer.get("choices")):
            self._raise_if_error(answer)
            raise ProviderProtocolError("The endpoint's answer has no choices.")
        self._take_chunk(answer)
        self.done = True
        return self.finish()

    def _take(self, event: Event) -> None:
        if event.event != "message" and self._is_other(event):
            return
        data = event.data
        if data[:1] != b"{":
            data = data.strip()
            if data == b"[DONE]":
                self.done = True
            if data[:1] != b"{":
                return
        chunk = parse(data)
        delta = _lone_delta(chunk) if self._is_known else None
        if delta is None:
            self._take_chunk(chunk)
        elif len(delta) == 1 and delta.get("content").__class__ is str:
            self._batch.text(delta["content"])
        else:
            self._take_delta(delta)

    def _is_other(self, event: Event) -> bool:
        """Whether a named event needs no further look; an error is raised."""
        name = event.event.lower()
        if name in _KEEP_ALIVE:
            return True
        if name == "error":
            value = parse(event.data) if event.data[:1] in b"{[" else event.text
            status = event.comment.removeprefix("HTTP_STATUS/")
            self._raise_if_error(value, named=True, status=int(status) if status.isdigit() else 0)
        return False

    def _take_chunk(self, chunk: Any) -> None:
        chunk = as_object(chunk)
        if "choices" not in chunk or "error" in chunk or "error_type" in chunk:
            self._raise_if_error(chunk)
        self._model = as_text(chunk.get("model")) or self._model
        usage = as_object(chunk.get("usage")) or as_object(
            as_object(chunk.get("x_groq")).get("usage")
        )
        if usage:
            self._usage = chat_usage(usage)
        for choice in as_list(chunk.get("choices"))[:1]:
            self._is_known = True
            self._take_choice(as_object(choice))

    def _take_choice(self, choice: dict[str, Any]) -> None:
        self._raise_if_error({"error": choice["error"]} if choice.get("error") else None)
        delta = as_object(choice.get("delta")) or as_object(choice.get("message"))
        if delta:
            self._take_delta(delta)
        elif isinstance(choice.get("text"), str):  # the older completions endpoint
            self._batch.text(choice["text"])
        word = choice.get("finish_reason")
        if isinstance(word, str) and word:
            self._reason = finish_reason(word)

    def _take_delta(self, delta: dict[str, Any]) -> None:
        self._batch.reasoning(_reasoning(delta))
        self._take_content(delta.get("content"))
        self._batch.text(as_text(delta.get("refusal")))
        for entry in as_list(delta.get("tool_calls")):
            self._take_call(as_object(entry))
        function = as_object(delta.get("function_call"))
        if function:
            call = self._calls.take_function(function)
            if call is not None:
                self._batch.call(call)

    def _take_call(self, entry: dict[str, Any]) -> None:
        call = self._calls.take(entry)
        if call is None:
            return
        extra = as_object(entry.get("extra_content"))
        if extra and call.id:  # Gemini wants its thought signature back beside the call.
            self._batch.proof(opaque=dump({"call": call.id, "extra_content": extra}))
        self._batch.call(call)

    def _take_content(self, content: Any) -> None:
        if isinstance(content, str):
            self._batch.text(content)
            return
        for part in as_list(content):
            if isinstance(part, str):
                self._batch.text(part)
                continue
            members = as_object(part)
            if members.get("type") in ("thinking", "reasoning"):
                self._batch.reasoning(_joined(members.get("thinking") or members.get("text")))
            else:
                self._batch.text(as_text(members.get("text")) or as_text(members.get("refusal")))


def _lone_delta(chunk: Any) -> dict[str, Any] | None:
    """The delta of a chunk that has nothing else to say, as nearly all chunks are."""
    try:
        [choice] = chunk["choices"]
        delta = choice["delta"]
        if (
            delta.__class__ is dict
            and choice.get("finish_reason") is None
            and not chunk.get("usage")
            and "error" not in chunk
            and "error" not in choice
        ):
            return delta
    except (KeyError, TypeError, ValueError):
        pass
    return None


def _reasoning(delta: dict[str, Any]) -> str:
    """The reasoning in a delta, once, though some endpoints send it under two names."""
    for name in _REASONING_FIELDS:
        if name in delta:
            text = _joined(delta[name])
            if text:
                return text
    return _joined(delta.get("reasoning_details"))


def _joined(value: Any) -> str:
    """Text, or the texts in an object or an array of objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_joined(entry) for entry in as_list(value))
    members = as_object(value)
    return as_text(members.get("text")) or as_text(members.get("content"))


def decode_answer(body: bytes, origin: str) -> list[Delta]:
    """Return the deltas of a whole answer; the last one is its ``Finish``.

    Raises:
        ProviderStatusError: the body is an error, whatever its HTTP status.
        ProviderProtocolError: the body is not a chat completion.
    """
    decoder = StreamDecoder(origin)
    if body.lstrip()[:5] in (b"data:", b"event"):  # Some servers stream whatever was asked.
        return decoder.take_events(Decoder().feed(body + b"\n\n"))
    return decoder.take_answer(as_object(parse(body)))
