"""Which endpoint answers, and with which settings, as the provider's HTTP server sees it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes.gateway import run as gateway_run
from support.scripted_http import ScriptedHttp, chat

pytestmark = pytest.mark.asyncio

Serve = Callable[..., Any]
HI = {"messages": [{"role": "user", "content": "hi"}]}


async def configure(home: Path, settings: dict[str, Any]) -> None:
    path = home / "config.yaml"
    present = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(present | settings))
    await asyncio.to_thread(gateway_run.look_at_settings)


def lab(provider: ScriptedHttp) -> dict[str, Any]:
    return {
        "base_url": provider.base_url,
        "api_key": "key-of-the-lab-upstream",
        "headers": {"X-Lab": "seven"},
        "temperature": 0.25,
    }


async def test_a_provider_that_the_settings_name_is_asked_with_all_of_its_settings(
    serve: Serve, home: Path
) -> None:
    server = await serve()
    server.provider.script(chat("ok"))
    await configure(
        home,
        {"model": {"provider": "lab", "default": "m"}, "providers": {"lab": lab(server.provider)}},
    )
    async with server.post(HI) as response:
        assert response.status == 200
    asked = server.provider.requests[0]
    assert (asked.headers["x-lab"], asked.body["temperature"]) == ("seven", 0.25)


async def test_a_route_leads_to_a_provider_that_the_settings_name(serve: Serve, home: Path) -> None:
    server = await serve(model_routes={"fast": {"model": "small", "provider": "lab"}})
    server.provider.script(chat("ok"))
    await configure(home, {"providers": {"lab": lab(server.provider)}})
    async with server.post(HI | {"model": "fast"}) as response:
        assert response.status == 200
    asked = server.provider.requests[0]
    assert (asked.body["model"], asked.headers["x-lab"]) == ("small", "seven")
    assert asked.headers["authorization"] == "Bearer key-of-the-lab-upstream"


async def test_a_changed_setting_of_the_endpoint_holds_from_the_next_turn_on(
    serve: Serve, home: Path
) -> None:
    server = await serve()
    server.provider.script(chat("ok"), chat("ok"))
    model = {"provider": "custom", "default": "m", "base_url": server.provider.base_url}
    for temperature in (0.25, 0.75):
        await configure(home, {"model": model | {"temperature": temperature}})
        async with server.post(HI) as response:
            assert response.status == 200
    assert [asked.body["temperature"] for asked in server.provider.requests] == [0.25, 0.75]
