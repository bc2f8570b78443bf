"""What outlives a turn: connections to providers, tools, stored sessions.

Where the settings for it come from is not known here.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hermes.agent.budget import Budget
from hermes.errors import ConfigError
from hermes.providers.base import Provider
from hermes.providers.chain import ProviderChain
from hermes.providers.http import Transport
from hermes.providers.registry import Endpoint, endpoint
from hermes.providers.retry import RetryPolicy
from hermes.sessions.store import SessionStore
from hermes.sessions.turns import SessionLocks
from hermes.tools.approval import ApprovalBroker, Gate
from hermes.tools.base import Tool, ToolContext
from hermes.tools.registry import ToolOptions, build_toolbox
from hermes.tools.toolbox import Toolbox

_log = logging.getLogger(__name__)

_MAX_CHAINS = 256
_MAX_PERSONA = 20_000
_LOOK_INTERVAL = 0.25

UNCONFIGURED = "auto"
"""The provider name that means: whatever model can be found on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChoice:
    """Who is to answer: a named provider with what stands in place of its own values."""

    provider: str
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    api_mode: str = ""
    fallbacks: tuple[Endpoint, ...] = ()


@dataclass(kw_only=True)
class AgentRuntime:
    """The long-lived parts that turns share; ``aclose`` releases them all.

    ``refine`` lays the operator's settings over an endpoint. ``unconfigured`` gives the provider
    of a choice that names none. ``extra_tools`` stand beside those of every toolset, for
    embedders. ``gate`` decides on each tool call; ``approvals`` holds those that wait for a
    person. ``environment`` is what commands see; it holds no key.
    ``look`` reads again what may have changed on disk, in a thread. ``settings`` gives what
    ``refine`` goes by, the same object as long as it has not changed. ``persona`` is the text of
    ``persona_file``, the operator's own words for who the agent is. ``closing`` are called first
    by ``aclose``.
    """

    store: SessionStore
    workdir: Path
    results: Path
    transport: Transport = field(default_factory=Transport)
    locks: SessionLocks = field(default_factory=SessionLocks)
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    refine: Callable[[Endpoint], Endpoint] = lambda made: made
    unconfigured: Callable[[], Awaitable[Provider]] | None = None
    budget: Budget = field(default_factory=Budget)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    extra_tools: tuple[Tool, ...] = ()
    tool_options: ToolOptions = field(default_factory=ToolOptions)
    approvals: ApprovalBroker = field(default_factory=ApprovalBroker)
    gate: Gate | None = None
    disabled_toolsets: tuple[str, ...] = ()
    persona_file: Path | None = None
    look: Callable[[], object] | None = None
    settings: Callable[[], object] | None = None
    closing: list[Callable[[], Awaitable[None]]] = field(
        default_factory=list[Callable[[], Awaitable[None]]]
    )

    def __post_init__(self) -> None:
        self._chains: dict[tuple[Endpoint, ...], ProviderChain] = {}
        self._toolboxes: dict[tuple[str, ...], Toolbox] = {}
        self.persona = ""
        self._persona_changed = 0
        self._next_look = 0.0
        self._seen: object = None
        self._chosen: dict[ProviderChoice, ProviderChain] = {}

    async def provider(self, choice: ProviderChoice) -> Provider:
        """Return the provider of a choice; the same for the same choice and settings.

        Raises:
            ConfigError: there is no such provider, its key is missing, or (``no_model``) none is
                configured and none was found.
        """
        if choice.provider == UNCONFIGURED:
            if self.unconfigured is None:
                raise ConfigError("No model is set up. Run 'hermes doctor'.", code="no_model")
            return await self.unconfigured()
        seen = self.settings() if self.settings is not None else None
        if seen is not self._seen:
            # Endpoints may have other settings now; one that has the same keeps its chain.
            self._seen, self._chosen = seen, {}
        known = self._chosen.get(choice)
        if known is None:
            known = self._chosen[choice] = self._chain(choice)
        return known

    def _chain(self, choice: ProviderChoice) -> ProviderChain:
        first = endpoint(
            choice.provider,
            model=choice.model,
            base_url=choice.base_url,
            api_key=choice.api_key,
            api_mode=choice.api_mode,
        )
        endpoints = (self.refine(first), *choice.fallbacks)
        chain = self._chains.get(endpoints)
        if chain is None:
            if len(self._chains) >= _MAX_CHAINS:
                self._chains.clear()
                self._chosen = {}
            chain = ProviderChain(endpoints, self.transport, policy=self.policy)
            self._chains[endpoints] = chain
        return chain

    async def refresh(self) -> None:
        """Look whether the operator has changed files; off the loop, a few times a second."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_INTERVAL
            await asyncio.to_thread(self._look)

    def _look(self) -> None:
        if self.look is not None:
            self.look()
        path = self.persona_file
        try:
            changed = path.stat().st_mtime_ns if path is not None else 0
            if path is not None and changed != self._persona_changed:
                self.persona = path.read_text("utf-8", "replace")[:_MAX_PERSONA]
                self._persona_changed = changed
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                _log.warning("%s cannot be read: %s", path, error)
            self.persona, self._persona_changed = "", 0

    def toolbox(self, toolsets: Sequence[str]) -> Toolbox:
        """Return the toolbox of the named toolsets; the same for the same names."""
        key = tuple(toolsets)
        toolbox = self._toolboxes.get(key)
        if toolbox is None:
            toolbox = build_toolbox(
                key,
                disabled=self.disabled_toolsets,
                options=self.tool_options,
                extra=self.extra_tools,
            )
            self._toolboxes[key] = toolbox
        return toolbox

    def tool_context(self, *, session_id: str, turn_id: str) -> ToolContext:
        """Return what the tools of one turn may know."""
        return ToolContext(
            session_id=session_id,
            turn_id=turn_id,
            call_id="",
            workdir=self.workdir,
            results=self.results,
            environment=dict(self.environment),
        )

    async def aclose(self) -> None:
        """Close providers, connections and the store."""
        for close in self.closing:
            await close()
        await self.transport.aclose()
        await self.store.aclose()
