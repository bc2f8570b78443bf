"""The OpenAI-compatible surface of the gateway.

Only names are gathered here; each lives in the module that its work belongs to.
"""

import asyncio

from aiohttp import web

from hermes import __version__ as _hermes_version
from hermes.gateway.platforms.api_server.adapter import APIServerAdapter
from hermes.gateway.platforms.api_server.errors import _redact_api_error_text
from hermes.gateway.platforms.api_server.middleware import (
    cors_middleware,
    security_headers_middleware,
)
from hermes.gateway.platforms.api_server.parse import _request_agent_overrides

AIOHTTP_AVAILABLE = True
"""The server is built on aiohttp, which the package requires."""


def check_api_server_requirements() -> bool:
    """Whether the surface can run in this installation."""
    return AIOHTTP_AVAILABLE


__all__ = [
    "APIServerAdapter",
    "_hermes_version",
    "_redact_api_error_text",
    "_request_agent_overrides",
    "asyncio",
    "check_api_server_requirements",
    "cors_middleware",
    "security_headers_middleware",
    "web",
]
