"""Which path leads to which handler."""

from typing import Any

from aiohttp import web


def add_routes(app: web.Application, adapter: Any) -> None:
    """Register the handlers of the adapter."""
    router = app.router
    for path in ("/health", "/v1/health"):
        router.add_get(path, adapter._handle_health)
    router.add_get("/v1/models", adapter._handle_models)
    router.add_get("/v1/models/{model:.+}", adapter._handle_model)
    router.add_post("/v1/chat/completions", adapter._handle_chat_completions)
