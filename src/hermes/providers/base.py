"""The port to a model: one call, streamed as deltas.

No retry, no fallback and no wire format is known here.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from hermes.events import Delta
from hermes.messages import ModelRequest


class Provider(Protocol):
    """A model endpoint, or several behind one."""

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        """Make one model call.

        The iterator ends after exactly one ``Finish``. With ``request.stream`` false the answer
        comes whole, in the same deltas. Leaving the context closes the connection at once.

        Raises (on entry or from the iterator):
            ProviderConnectionError, ProviderTimeoutError, ProviderStatusError,
            ProviderProtocolError, EmptyAnswerError.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and child processes; idempotent."""
        ...
