"""The server's composition root: settings to running surfaces, and their gentle end.

What a surface does, and how a model is chosen, is decided elsewhere.
"""

import asyncio
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass

from hermes.agent.runtime import AgentRuntime
from hermes.errors import ConfigError
from hermes.gateway import run as gateway_run
from hermes.gateway.config import Platform, gateway_config
from hermes.gateway.platforms.api_server import APIServerAdapter
from hermes.hermes_cli.config import LoadedSettings

_log = logging.getLogger(__name__)

_BIND_PATIENCE = 15.0
"""Seconds to wait for the port: a server that is being replaced needs a moment to let go."""

_BIND_INTERVAL = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the server can be reached."""

    url: str
    model: str


class GatewayServer:
    """The process: one runtime, one HTTP surface.

    ``announce`` is told once where the server listens; ``say`` takes lines for the person who
    started it.
    """

    def __init__(self, loaded: LoadedSettings, *, say: Callable[[str], None]) -> None:
        self._loaded = loaded
        self._say = say
        self._stop = asyncio.Event()
        self._runtime: AgentRuntime | None = None
        self._adapter: APIServerAdapter | None = None

    async def start(self) -> Listening:
        """Listen, open the store meanwhile, and begin to look for a model.

        Raises:
            ConfigError: the key, the address or a setting cannot be used.
            SessionError: the database cannot be opened.
        """
        settings = self._loaded.settings
        self._runtime = runtime = await gateway_run.prepare_runtime(self._loaded, say=self._say)
        platform = gateway_config(settings).platforms[Platform.API_SERVER]
        adapter = await asyncio.to_thread(APIServerAdapter, platform, runtime)
        self._adapter = adapter
        await self._listen(adapter)
        await gateway_run.open_runtime(runtime)
        host = f"[{adapter._host}]" if ":" in adapter._host else adapter._host
        return Listening(url=f"http://{host}:{adapter.port}", model=adapter._model_name)

    async def _listen(self, adapter: APIServerAdapter) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _BIND_PATIENCE
        told = False
        while not await adapter.connect():
            if not adapter.fatal_error_retryable or loop.time() >= deadline:
                raise ConfigError(adapter.fatal_error_message, code=adapter.fatal_error_code)
            if not told:
                self._say(f"{adapter.fatal_error_message} Waiting {_BIND_PATIENCE:.0f} s for it.")
                told = True
            await asyncio.sleep(_BIND_INTERVAL)

    async def run_until_stopped(self) -> None:
        """Serve until ``stop`` or a signal to end; a second signal ends the wait for turns."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        await self._stop.wait()

    def stop(self) -> None:
        """Begin to end; calling it again ends without waiting for turns."""
        if self._stop.is_set() and self._adapter is not None:
            for held in list(self._adapter._slots):
                held.control.cancel()
        self._stop.set()

    async def aclose(self) -> None:
        """Finish or store the running turns, then close everything; idempotent."""
        if (adapter := self._adapter) is not None:
            limit = self._loaded.settings.agent.restart_drain_timeout
            running = adapter._inflight_agent_runs
            if running:
                self._say(f"Stopping; waiting up to {limit:g} s for {running} running turn(s).")
            stopped = await adapter.drain(limit)
            if stopped:
                self._say(f"{stopped} turn(s) were stopped and stored as far as they had come.")
            await adapter.disconnect()
            self._adapter = None
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.aclose()


async def serve(
    loaded: LoadedSettings,
    *,
    say: Callable[[str], None],
    announce: Callable[[Listening], None],
) -> None:
    """Run the server until it is told to end."""
    server = GatewayServer(loaded, say=say)
    try:
        announce(await server.start())
        await server.run_until_stopped()
    finally:
        await server.aclose()
