"""What the stream decoders of all protocols share: merging deltas, ending once, failing late.

No protocol is known here. A decoder takes the events of one network read at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from hermes.errors import ProviderError, ProviderProtocolError, ProviderStatusError
from hermes.events import Delta, Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from hermes.messages import Usage
from hermes.sse import Event
from hermes.wire.failures import event_error


class Batch:
    """Deltas of one network read, adjacent texts and adjacent reasonings made one.

    ``has_content`` and ``has_calls`` tell about the whole stream.
    """

    __slots__ = ("_deltas", "_reasoning", "_text", "has_calls", "has_content")

    def __init__(self) -> None:
        self._deltas: list[Delta] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.has_content = False
        self.has_calls = False

    def text(self, piece: str) -> None:
        """Add words of the answer."""
        if piece:
            if self._reasoning:
                self._flush()
            self.has_content = True
            self._text.append(piece)

    def reasoning(self, piece: str) -> None:
        """Add words of the reasoning."""
        if piece:
            if self._text:
                self._flush()
            self.has_content = True
            self._reasoning.append(piece)

    def proof(self, *, signature: str = "", opaque: str = "") -> None:
        """Add what makes the reasoning before it valid at its endpoint, or stands in its place."""
        if signature or opaque:
            self.has_content = True
            self.add(ReasoningDelta("", signature, opaque))

    def call(self, delta: ToolCallDelta) -> None:
        """Add a piece of a tool call."""
        self.has_content = True
        self.has_calls = True
        self.add(delta)

    def add(self, delta: Delta) -> None:
        """Add a delta that stands for itself."""
        self._flush()
        self._deltas.append(delta)

    def take(self) -> list[Delta]:
        """Return what came since the last call."""
        self._flush()
        deltas, self._deltas = self._deltas, []
        return deltas

    def _flush(self) -> None:
        if self._text:
            self._deltas.append(TextDelta("".join(self._text)))
            self._text.clear()
        elif self._reasoning:
            self._deltas.append(ReasoningDelta("".join(self._reasoning)))
            self._reasoning.clear()


class StreamDecoderBase(ABC):
    """One stream's state.

    ``done``: a terminal marker was seen, nothing more need be read.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.done = False
        self._batch = Batch()
        self._failure: ProviderError | None = None
        self._reason: FinishReason | None = None
        self._usage = Usage()
        self._model = ""
        self._closed = False

    @property
    def has_content(self) -> bool:
        """Whether text, reasoning or a tool call was seen."""
        return self._batch.has_content

    @property
    def finished(self) -> bool:
        """Whether the model said why it stopped; usage and the marker may still come."""
        return self._reason is not None

    def feed(self, events: Sequence[Event]) -> list[Delta]:
        """Return the deltas of ``events``.

        A failure behind deltas of the same batch is raised by the next call, so that nothing
        delivered is lost.

        Raises:
            ProviderStatusError: the stream holds an error.
            ProviderProtocolError: the stream is not this protocol.
        """
        if self._failure is not None:
            raise self._failure
        try:
            for event in events:
                if self.done:
                    break
                self._take(event)
        except ProviderError as failure:
            self._failure = failure
            self.done = True
            deltas = self._batch.take()
            if not deltas:
                raise
            return deltas
        return self._batch.take()

    def finish(self) -> list[Delta]:
        """Return what closes a whole stream: a ``Finish`` as the last delta, once.

        Raises:
            ProviderProtocolError: ``provider_incomplete``, the stream was cut.
            ProviderError: a failure that ``feed`` still held.
        """
        if self._failure is not None:
            raise self._failure
        if self._closed:
            return []
        self._closed = True
        if self._reason is None and not self.done:
            raise ProviderProtocolError(
                "The endpoint's answer broke off before its end.", code="provider_incomplete"
            )
        reason = self._reason or "stop"
        if self._batch.has_calls and reason == "stop":
            reason = "tool_calls"
        self._batch.add(
            Finish(reason=reason, usage=self._usage, model=self._model, origin=self.origin)
        )
        return self._batch.take()

    def take_events(self, events: Sequence[Event]) -> list[Delta]:
        """Return the deltas of a whole stream at once, its ``Finish`` last. Raises as the two."""
        return [*self.feed(events), *self.finish()]

    @abstractmethod
    def _take(self, event: Event) -> None:
        """Take one event of the protocol."""

    def _raise_if_error(self, value: object, *, named: bool = False, status: int = 0) -> None:
        error = event_error(value, named=named, status=status)
        if error is not None:
            raise error


FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "max_completion_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "sensitive": "content_filter",
}
"""What the protocols call the end; an unknown word means ``stop``."""


def finish_reason(word: str) -> FinishReason:
    """Return the reason that ``word`` stands for.

    Raises:
        ProviderStatusError: the word says that the model failed.
    """
    lower = word.lower()
    if lower in ("error", "failed", "network_error", "insufficient_system_resource"):
        raise ProviderStatusError(
            f"The endpoint ended its answer with {lower!r}.", status=500, retryable=True
        )
    return FINISH_REASONS.get(lower, "stop")
