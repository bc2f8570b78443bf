"""A real server on loopback whose model is the scripted provider."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest_asyncio
import yaml

from hermes.gateway.config import Platform, gateway_config
from hermes.gateway.platforms.api_server import APIServerAdapter
from hermes.gateway.run import build_runtime
from hermes.hermes_cli import config
from support.scripted_http import ScriptedHttp

KEY = "n0t-s0-secret-Qz81vT6mYw3b"


@dataclass
class Server:
    """A running server and a client of it."""

    adapter: APIServerAdapter
    runtime: Any
    http: aiohttp.ClientSession
    provider: ScriptedHttp

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.adapter.port}{path}"

    def post(self, body: Any, path: str = "/v1/chat/completions", **keywords: Any) -> Any:
        headers = {"Authorization": f"Bearer {KEY}", **keywords.pop("headers", {})}
        if isinstance(body, bytes):
            headers.setdefault("Content-Type", "application/json")
            return self.http.post(self.url(path), data=body, headers=headers, **keywords)
        return self.http.post(self.url(path), json=body, headers=headers, **keywords)

    def get(self, path: str, **headers: str) -> Any:
        return self.http.get(self.url(path), headers={"Authorization": f"Bearer {KEY}", **headers})


@pytest_asyncio.fixture
async def serve(
    scripted_http: ScriptedHttp, home: Path, tmp_path: Path
) -> AsyncIterator[Callable[..., Any]]:
    """Start a server with settings laid over those that name the scripted provider."""
    async with AsyncExitStack() as stack:

        async def start(*, tools: tuple[Any, ...] = (), **extra: Any) -> Server:
            settings = {
                "model": {
                    "provider": "custom",
                    "default": "m",
                    "base_url": scripted_http.base_url,
                    "api_key": "upstream-key-of-the-test",
                },
                "platforms": {"api_server": {"extra": {"port": 0, "key": KEY, **extra}}},
                "terminal": {"cwd": str(tmp_path)},
            }
            (home / "config.yaml").write_text(yaml.safe_dump(settings))
            loaded = await asyncio.to_thread(config.load_settings)
            runtime = await build_runtime(loaded, say=lambda _line: None)
            runtime.extra_tools = tools
            stack.push_async_callback(runtime.aclose)
            platform = gateway_config(loaded.settings).platforms[Platform.API_SERVER]
            adapter = await asyncio.to_thread(APIServerAdapter, platform, runtime)
            assert await adapter.connect()
            stack.push_async_callback(adapter.disconnect)
            http = await stack.enter_async_context(
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))
            )
            return Server(adapter, runtime, http, scripted_http)

        yield start
