"""What has come of one call, kept for the log line that tells how it failed.

No address, header or key is in it.
"""

import logging
from collections.abc import Mapping

from hermes.errors import ProviderError
from hermes.providers.clock import Clock
from hermes.redaction import redact

_log = logging.getLogger(__name__)

_REQUEST_IDS = ("x-request-id", "request-id", "x-generation-id", "cf-ray", "x-amzn-requestid")
_MAX_CAUSES = 6
_MAX_CAUSE_CHARS = 200


class Progress:
    """Counts of a call; times in seconds since it began."""

    __slots__ = (
        "_clock",
        "_started",
        "first_byte",
        "first_content",
        "reads",
        "received",
        "request_id",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.now()
        self.first_byte: float | None = None
        self.first_content: float | None = None
        self.received = 0
        self.reads = 0
        self.request_id = ""

    def answered(self, headers: Mapping[str, str]) -> None:
        """The head of the answer came."""
        self.request_id = next((headers[name] for name in _REQUEST_IDS if name in headers), "")

    def read(self, size: int) -> None:
        """Bytes of the body came."""
        if not self.reads:
            self.first_byte = self._clock.now() - self._started
        self.reads += 1
        self.received += size

    def content(self) -> None:
        """A piece of the answer came."""
        if self.first_content is None:
            self.first_content = self._clock.now() - self._started

    def log_failure(
        self, endpoint: str, model: str, attempt: tuple[int, int, bool], error: ProviderError
    ) -> None:
        """Write the one line about a failed call."""
        _log.warning(
            "model call failed: endpoint=%s model=%s attempt=%d/%d code=%s cause=%s bytes=%d "
            "chunks=%d elapsed=%.3fs ttfb=%s first_content=%s request_id=%s",
            endpoint,
            model,
            attempt[0],
            attempt[1],
            error.code,
            _causes(error),
            self.received,
            self.reads,
            self._clock.now() - self._started,
            _seconds(self.first_byte),
            _seconds(self.first_content),
            redact(self.request_id)[:_MAX_CAUSE_CHARS] or "-",
        )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}s"


def _causes(error: BaseException) -> str:
    """The chain of exceptions, outermost first, on one line and without secrets."""
    texts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(texts) < _MAX_CAUSES:
        words = " ".join(redact(str(cause)).split())[:_MAX_CAUSE_CHARS]
        texts.append(f"{type(cause).__name__}({words})")
        cause = cause.__cause__
    return " < ".join(texts)
