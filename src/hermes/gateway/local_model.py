"""A model for a configuration that names none: a server on this machine, else the embedded one.

It is looked for in the background, so that the server listens at once.
"""

import asyncio
from collections.abc import Awaitable, Callable

from hermes.errors import ConfigError, HermesError
from hermes.hermes_cli.config import LoadedSettings
from hermes.providers.base import Provider
from hermes.providers.chain import ProviderChain
from hermes.providers.http import Transport
from hermes.providers.local import ensure_local
from hermes.providers.local_catalogue import find_weights
from hermes.providers.local_detect import CANDIDATES, detect, no_model_text
from hermes.providers.local_weights import weights_path
from hermes.providers.registry import endpoint

_MEGABYTE = 1_000_000
_STEP = 50 * _MEGABYTE


class LocalModel:
    """Finds, pulls and starts a local model once; ``say`` takes lines of progress."""

    def __init__(
        self, loaded: LoadedSettings, transport: Transport, *, say: Callable[[str], None]
    ) -> None:
        self._loaded = loaded
        self._transport = transport
        self._say = say
        self._search: asyncio.Task[Provider] | None = None
        self._close: Callable[[], Awaitable[None]] | None = None

    def start(self) -> None:
        """Begin to look; a search that failed before is made again."""
        if self._search is None or (self._search.done() and not _found(self._search)):
            self._search = asyncio.get_running_loop().create_task(self._find(), name="local-model")
            self._search.add_done_callback(self._report)

    def _report(self, search: asyncio.Task[Provider]) -> None:
        if not search.cancelled() and (error := search.exception()) is not None:
            self._say(error.message if isinstance(error, HermesError) else repr(error))

    async def provider(self) -> Provider:
        """Wait for the model and return it.

        Raises:
            ConfigError: ``no_model``, with what to do.
            LocalModelError: the embedded model cannot be had on this machine.
        """
        self.start()
        assert self._search is not None
        return await asyncio.shield(self._search)

    async def _find(self) -> Provider:
        settings = self._loaded.settings.local
        detection = await detect(CANDIDATES if settings.detect_servers else ())
        server = detection.usable
        if server is not None:
            self._say(detection.summary())
            base_url, model = server.candidate.base_url, server.models[0]
            served = endpoint("custom", base_url=base_url, model=model)
            return ProviderChain((served,), self._transport)
        if detection.servers:
            self._say(detection.summary())
        if not settings.enabled:
            raise ConfigError(no_model_text(detection), code="no_model")
        return await self._embedded(settings.model)

    async def _embedded(self, name: str) -> Provider:
        weights = find_weights(name)
        home = self._loaded.home
        if await asyncio.to_thread(weights_path, home, weights.name) is None:
            self._say(
                f"No provider is set. Fetching the local demo model {weights.name} "
                f"({weights.size / _MEGABYTE:.0f} MB, {weights.licence}), once."
            )
        else:
            self._say(f"No provider is set. Starting the local demo model {weights.name}.")
        provider = await ensure_local(home, weights.name, self._progress())
        self._close = provider.aclose
        self._say(
            "You are talking to a tiny demo model on this computer. It is often wrong. "
            "Set a provider for real work: hermes config set OPENAI_API_KEY ... (or another)."
        )
        return provider

    def _progress(self) -> Callable[[int, int], None]:
        told = 0

        def progress(done: int, total: int) -> None:
            nonlocal told
            if done - told >= _STEP or (done >= total and told < total):
                told = done
                self._say(f"  {done / _MEGABYTE:.0f} of {total / _MEGABYTE:.0f} MB")

        return progress

    async def aclose(self) -> None:
        """Stop looking, and end the embedded model; idempotent."""
        search, self._search = self._search, None
        if search is not None:
            search.cancel()
            await asyncio.wait({search})
        close, self._close = self._close, None
        if close is not None:
            await close()


def _found(search: asyncio.Task[Provider]) -> bool:
    return not search.cancelled() and search.exception() is None
