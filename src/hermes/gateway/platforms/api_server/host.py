"""What a request handler may ask of the server it runs in.

Handlers are functions over this protocol; the adapter is its one implementation.
"""

import asyncio
from typing import Any, Protocol

from aiohttp import web

from hermes.gateway.platforms.api_server.admission import Slot
from hermes.gateway.platforms.api_server.bridge import StreamQueue
from hermes.messages import JsonObject


class Host(Protocol):
    """The server as its handlers see it."""

    _api_key: str
    _cors_origins: tuple[str, ...]
    _direct_model_requests: bool
    _draining: bool
    _inflight_agent_runs: int
    _max_concurrent_runs: int
    _model_name: str
    _model_routes: dict[str, dict[str, Any]]
    _last_resolved_model: dict[str, str]
    _slots: set[Slot]
    _idle: asyncio.Event
    _tool_progress: str
    _coalesce: float
    _keepalive: float

    def _check_auth(self, request: web.Request) -> web.Response | None: ...

    def _origin_allowed(self, origin: str) -> bool: ...

    def _concurrency_limited_response(self) -> web.Response | None: ...

    def _check_model_name(self, name: str) -> None: ...

    def _resolve_route(self, alias: str) -> JsonObject | None: ...

    def _session_model_override_for(self, key: str) -> JsonObject | None: ...

    def _create_agent(self, **keywords: Any) -> Any: ...

    async def _run_agent(self, **keywords: Any) -> tuple[dict[str, Any], dict[str, int]]: ...

    async def _write_sse_chat_completion(
        self,
        request: web.Request,
        completion_id: str,
        model: str,
        created: int,
        stream_q: StreamQueue,
        running: Any,
    ) -> web.StreamResponse: ...
