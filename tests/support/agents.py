"""Agents and providers wired to the scripted HTTP provider, as tests need them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes.agent.cancel import TurnControl
from hermes.agent.runtime import AgentRuntime
from hermes.events import Delta, TurnEvent, TurnResult
from hermes.messages import JsonObject, ModelRequest, ToolResult, ToolSpec, text_message
from hermes.providers.chain import ProviderChain
from hermes.providers.http import Transport
from hermes.providers.limits import Limits
from hermes.providers.registry import Endpoint, endpoint
from hermes.providers.retry import RetryPolicy
from hermes.run_agent import AIAgent
from hermes.sessions.memory import MemorySessionStore
from hermes.tools.base import ToolContext
from support.scripted_http import ScriptedHttp, data, delta, stream, usage

FAST = RetryPolicy(attempts=3, base=0.0)


class Recorder:
    """A sink that keeps every event and lets a test wait for one."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []
        self._changed = asyncio.Event()

    def emit(self, event: TurnEvent) -> None:
        self.events.append(event)
        self._changed.set()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def text(self) -> str:
        return "".join(event.text for event in self.events if event.kind == "text_delta")

    async def until(self, kind: str) -> None:
        async with asyncio.timeout(20):
            while kind not in self.kinds():
                self._changed.clear()
                await self._changed.wait()


class CountingTool:
    """A tool that counts its runs and does what the test says."""

    def __init__(
        self,
        name: str = "count",
        act: Callable[[JsonObject], Awaitable[str]] | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.runs: list[dict[str, Any]] = []
        self._act = act
        self._spec = ToolSpec(
            name=name,
            description="counts",
            parameters=parameters or {"type": "object", "properties": {"n": {"type": "integer"}}},
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def __call__(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.runs.append(dict(arguments))
        text = "done" if self._act is None else await self._act(arguments)
        return ToolResult(call_id=context.call_id, name=self._spec.name, text=text)


def served_by(server: ScriptedHttp, **changes: Any) -> Endpoint:
    """The endpoint of a scripted server."""
    made = endpoint("custom", base_url=server.base_url, api_key="key-of-the-test", model="m")
    return replace(made, **changes)


async def no_sleep(_seconds: float) -> None:
    """Do not wait between two tries."""


@asynccontextmanager
async def chain_over(*endpoints: Endpoint, **keywords: Any) -> AsyncIterator[ProviderChain]:
    """A chain over endpoints that does not wait between tries."""
    transport = Transport()
    keywords.setdefault("sleep", no_sleep)
    try:
        yield ProviderChain(endpoints, transport, **keywords)
    finally:
        await transport.aclose()


def asking(text: str = "hi", **fields: Any) -> ModelRequest:
    """A request with one user message."""
    return ModelRequest(model="", messages=(text_message("user", text),), **fields)


async def answer_of(chain: ProviderChain, request: ModelRequest | None = None) -> list[Delta]:
    """All deltas of one call."""
    async with asyncio.timeout(20), chain.stream(request or asking()) as deltas:
        return [item async for item in deltas]


def text_of(deltas: list[Delta]) -> str:
    return "".join(item.text for item in deltas if item.kind == "text_delta")


@asynccontextmanager
async def runtime_for(folder: Path, **fields: Any) -> AsyncIterator[AgentRuntime]:
    """A runtime over a memory store whose providers do not wait between tries."""
    runtime = AgentRuntime(
        store=MemorySessionStore(),
        workdir=folder,
        results=folder / "results",
        policy=FAST,
        **fields,
    )
    try:
        yield runtime
    finally:
        await runtime.aclose()


def agent_at(server: ScriptedHttp, runtime: AgentRuntime, **keywords: Any) -> AIAgent:
    """An agent whose model is the scripted server."""
    keywords.setdefault("enabled_toolsets", ("none",))
    return AIAgent(
        provider="custom",
        base_url=server.base_url,
        api_key="key-of-the-test",
        model="m",
        runtime=runtime,
        **keywords,
    )


async def run_turn(agent: AIAgent, text: str = "hi", history: Any = ()) -> TurnResult:
    async with asyncio.timeout(40):
        return await agent.run(text, history)


def calls(*wanted: tuple[str, str, str], finish: str = "tool_calls") -> list[bytes]:
    """The events of an answer that calls tools: (id, name, arguments)."""
    listed = [
        {"index": number, "id": call_id, "type": "function",
         "function": {"name": name, "arguments": arguments}}
        for number, (call_id, name, arguments) in enumerate(wanted)
    ]  # fmt: skip
    return [delta(tool_calls=listed), delta(finish=finish), usage(), b"data: [DONE]\n\n"]


def calling(*wanted: tuple[str, str, str], finish: str = "tool_calls") -> list[Any]:
    return list(stream(*calls(*wanted, finish=finish)))


__all__ = [
    "FAST", "Limits", "Recorder", "TurnControl", "agent_at", "answer_of", "asking", "calling",
    "calls", "chain_over", "data", "no_sleep", "run_turn", "runtime_for", "served_by", "text_of",
]  # fmt: skip
