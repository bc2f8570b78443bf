"""The OpenAI-compatible surface: it wires handlers to the state that they share.

What a handler does is in its own module; nothing is decided here but what the settings say.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from aiohttp import web

from hermes.agent.runtime import AgentRuntime
from hermes.errors import RequestError
from hermes.gateway.config import Platform, PlatformConfig
from hermes.gateway.platforms.api_server import (
    admission,
    agents,
    auth,
    catalog,
    chat,
    chat_stream,
    middleware,
)
from hermes.gateway.platforms.api_server.admission import Slot
from hermes.gateway.platforms.api_server.routes import add_routes
from hermes.gateway.platforms.base import PlatformAdapter, SendResult
from hermes.hermes_cli import config as settings_file
from hermes.hermes_cli import profiles
from hermes.hermes_cli.settings import GatewayAPIServer

_log = logging.getLogger(__name__)

_DEFAULT_MAX_RUNS = GatewayAPIServer().max_concurrent_runs
_MAX_BODY = 10_000_000


class APIServerAdapter(PlatformAdapter):
    """Serves the agent over HTTP; ``connect`` listens, ``drain`` ends it gently.

    ``runtime`` is what turns run with; the server's composition root gives it.
    """

    name = "api_server"

    def __init__(self, config: PlatformConfig, runtime: AgentRuntime | None = None) -> None:
        super().__init__(config, Platform.API_SERVER)
        extra = config.extra
        self._runtime = runtime
        self._host = str(extra.get("host") or "127.0.0.1")
        self._port = int(extra.get("port", 8642))
        self._api_key = str(extra.get("key") or "")
        self._cors_origins = tuple(cast("list[str]", extra.get("cors_origins") or ()))
        self._model_name = self._resolve_model_name(str(extra.get("model_name") or ""))
        self._model_routes = _parse_routes(extra.get("model_routes"))
        self._direct_model_requests = bool(extra.get("direct_model_requests", False))
        self._strict_model_names = bool(extra.get("strict_model_names", False))
        self._tool_progress = str(extra.get("tool_progress") or "events")
        self._coalesce = float(extra.get("coalesce_seconds", 0.01))
        self._keepalive = float(extra.get("keepalive_seconds", 15.0))
        self._max_concurrent_runs = self._resolve_max_concurrent_runs()
        self._inflight_agent_runs = 0
        self._slots: set[Slot] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._last_resolved_model: dict[str, str] = {}
        self._draining = False
        self._app_runner: web.AppRunner | None = None

    _check_auth = auth.check_auth
    _api_key_passes_startup_guard = auth.api_key_passes_startup_guard
    _concurrency_limited_response = admission.concurrency_limited_response
    _create_agent = agents.create_agent
    _run_agent = agents.run_agent_turn
    _write_sse_chat_completion = chat_stream.write_sse_chat_completion
    _handle_health = catalog.handle_health
    _handle_models = catalog.handle_models
    _handle_model = catalog.handle_model
    _handle_chat_completions = chat.handle_chat_completions

    @staticmethod
    def _resolve_model_name(explicit: str) -> str:
        if explicit:
            return explicit
        profile = profiles.get_active_profile_name()
        return "hermes-agent" if profile in ("", "default") else profile

    @staticmethod
    def _resolve_max_concurrent_runs() -> int:
        gateway = cast("Mapping[str, Any]", settings_file.load_config().get("gateway") or {})
        value = cast("Mapping[str, Any]", gateway.get("api_server") or {}).get(
            "max_concurrent_runs"
        )
        return _DEFAULT_MAX_RUNS if value is None else max(0, int(value))

    def _origin_allowed(self, origin: str) -> bool:
        return not origin or "*" in self._cors_origins or origin in self._cors_origins

    def _resolve_route(self, alias: str) -> Mapping[str, Any] | None:
        return self._model_routes.get(alias)

    def _session_model_override_for(self, key: str) -> Mapping[str, Any] | None:
        del key
        return None

    def _check_model_name(self, name: str) -> None:
        if self._strict_model_names and name not in ("", self._model_name):
            raise RequestError(
                f"There is no model {name!r}; GET /v1/models lists them.",
                code="model_not_found",
                param="model",
                status=404,
            )

    @property
    def port(self) -> int:
        """The port that is listened on, once connected."""
        runner = self._app_runner
        return int(runner.addresses[0][1]) if runner is not None else self._port

    def application(self) -> web.Application:
        """Return the web application with all routes."""
        app = web.Application(
            client_max_size=_MAX_BODY,
            middlewares=[
                middleware.security_headers_middleware,
                middleware.cors_middleware,
                middleware.host_middleware,
                middleware.error_middleware,
            ],
        )
        app[middleware.ADAPTER] = self
        add_routes(app, self)
        return app

    async def connect(self) -> bool:
        """Listen; False with a fatal error when the key or the address cannot be used."""
        if not self._api_key_passes_startup_guard():
            self.set_fatal_error(
                "api_server_key_invalid",
                "API_SERVER_KEY is missing or weak: set at least 16 random characters.",
                retryable=False,
            )
            return False
        runner = web.AppRunner(
            self.application(), access_log=None, handler_cancellation=True, shutdown_timeout=2.0
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port, backlog=1024).start()
        except OSError as error:
            await runner.cleanup()
            self.set_fatal_error(
                "port_unavailable",
                f"Cannot listen on {self._host}:{self._port}: {error.strerror}. "
                "Stop what uses it, or set API_SERVER_PORT.",
                retryable=True,
            )
            return False
        self._app_runner = runner
        return True

    async def drain(self, limit: float) -> int:
        """Take no new turns and wait for the running ones; after ``limit`` seconds stop them.

        Returns how many had to be stopped; each is stored and ends with its terminal event.
        """
        self._draining = True
        await self._emptied(limit)
        stopped = list(self._slots)
        for held in stopped:
            held.control.cancel()
        await self._emptied(10.0)
        return len(stopped)

    async def _emptied(self, limit: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), limit)

    async def disconnect(self) -> None:
        """Close the listener and every connection; idempotent."""
        runner, self._app_runner = self._app_runner, None
        if runner is not None:
            await runner.cleanup()

    async def send(self, chat_id: str, text: str) -> SendResult:
        """Refuse: over HTTP the agent speaks only when it is asked."""
        del chat_id, text
        return SendResult(
            success=False, error="The API server answers by HTTP request/response only."
        )


def _parse_routes(value: Any) -> dict[str, dict[str, Any]]:
    routes: dict[str, dict[str, Any]] = {}
    for alias, route in cast("dict[str, Any]", value or {}).items():
        if isinstance(route, dict) and cast("dict[str, Any]", route).get("model"):
            routes[str(alias)] = cast("dict[str, Any]", route)
        else:
            _log.warning("model_routes.%s has no model and is left out", alias)
    return routes
