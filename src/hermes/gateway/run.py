"""From settings to what answers: which provider, which model, which long-lived parts.

The functions with a leading underscore are fixed names that embedders may replace; each is called
through this module.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hermes.agent.budget import Budget
from hermes.agent.runtime import AgentRuntime
from hermes.errors import ConfigError
from hermes.hermes_cli import config, tools_config
from hermes.hermes_cli.config import LoadedSettings
from hermes.hermes_cli.settings import EndpointSettings, Settings
from hermes.messages import ModelOptions
from hermes.providers.registry import PROFILES, Endpoint, Limits, endpoint, find_profile
from hermes.providers.retry import RetryPolicy
from hermes.redaction import redact
from hermes.sessions.deferred import deferred, opened
from hermes.sessions.opening import DATABASE_NAME, open_store
from hermes.tools.registry import ToolOptions
from hermes.tools.terminal import TerminalLimits

AUTO = "auto"
"""The provider of a configuration that names none: the first with a key, else a local model."""

_HIDDEN = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|DATABASE_URL|_DSN|AUTH", re.IGNORECASE)


_LOOK_INTERVAL = 5.0
"""Seconds for which settings are trusted that nobody looks after; a runtime looks more often."""

_looked: tuple[float, str | None, LoadedSettings] | None = None


def _settings() -> LoadedSettings:
    if _looked is None or _looked[1] != config.home_variable() or time.monotonic() >= _looked[0]:
        return look_at_settings()
    return _looked[2]


def look_at_settings() -> LoadedSettings:
    """Read the settings again where they have changed, and return them; blocks for a moment."""
    global _looked  # noqa: PLW0603 - one memory a process, keyed by home and time
    loaded = config.current_settings()
    _looked = (time.monotonic() + _LOOK_INTERVAL, config.home_variable(), loaded)
    _derived(loaded, "raw", _raw)
    return loaded


_kept: tuple[LoadedSettings, dict[str, Any]] | None = None
"""What was worked out from the settings in force; it goes when they do."""

_T = TypeVar("_T")


def _derived(loaded: LoadedSettings, name: str, make: Callable[[LoadedSettings], _T]) -> _T:
    global _kept  # noqa: PLW0603 - one memory a process, keyed by the settings themselves
    if _kept is None or _kept[0] is not loaded:
        _kept = (loaded, {})
    values = _kept[1]
    if name not in values:
        values[name] = make(loaded)
    return values[name]


def _load_gateway_config() -> dict[str, Any]:
    return _derived(_settings(), "raw", _raw)


def _raw(_loaded: LoadedSettings) -> dict[str, Any]:
    return config.load_config()


def _resolve_gateway_model() -> str:
    model = _settings().settings.model
    return model.default or model.model


def _current_max_iterations() -> int:
    return _settings().settings.agent.max_turns


def _resolve_runtime_agent_kwargs() -> dict[str, Any]:
    """Return ``provider, api_key, base_url, api_mode`` of the main model.

    Raises:
        ConfigError: the provider does not exist or its key is missing.
    """
    loaded = _settings()
    return _derived(loaded, "main", _main_keywords)


def _main_keywords(loaded: LoadedSettings) -> dict[str, Any]:
    main = loaded.settings.model
    name = main.provider.strip() or AUTO
    if name == AUTO and not main.base_url:
        found = first_with_key(loaded.environment)
        return _resolve_runtime_agent_kwargs_for_provider(found) if found else {"provider": AUTO}
    if name == AUTO:
        name = "custom"
    return _keywords(_over(main, _named(loaded.settings, name)), name, loaded)


def _resolve_runtime_agent_kwargs_for_provider(provider: str) -> dict[str, Any]:
    """Return the same for a provider by name: one of ``providers:``, the main one, or a known one.

    Raises:
        ConfigError: there is none of that name, or its key is missing.
    """
    loaded = _settings()
    main = loaded.settings.model
    chosen = _named(loaded.settings, provider)
    if provider == main.provider:
        chosen = _over(main, chosen)
    return _keywords(chosen, provider, loaded)


def _named(settings: Settings, name: str) -> EndpointSettings:
    return settings.providers.get(name) or EndpointSettings()


def _over(upper: EndpointSettings, lower: EndpointSettings) -> EndpointSettings:
    """Return ``lower`` with everything that ``upper`` sets."""
    return lower.model_copy(
        update={name: getattr(upper, name) for name in upper.model_fields_set if name != "provider"}
    )


def _keywords(chosen: EndpointSettings, name: str, loaded: LoadedSettings) -> dict[str, Any]:
    profile_name = chosen.provider if chosen.provider not in ("", AUTO) else name
    if name in loaded.settings.providers and profile_name not in PROFILES:
        profile_name = "custom"
    profile = find_profile(profile_name)
    key = chosen.api_key.get_secret_value()
    if not key and not chosen.base_url:
        variables = (loaded.environment.get(variable, "") for variable in profile.key_variables)
        key = next((value for value in variables if value), "")
    return {
        "provider": profile.name,
        "api_key": key,
        "base_url": chosen.base_url,
        "api_mode": chosen.api_mode,
    }


def first_with_key(environment: Mapping[str, str]) -> str:
    """Return the first known provider whose key is in the environment, "" for none."""
    for profile in PROFILES.values():
        if any(environment.get(variable, "").strip() for variable in profile.key_variables):
            return profile.name
    return ""


class GatewayRunner:
    """Settings of a turn that are not the endpoint's."""

    @staticmethod
    def _load_reasoning_config() -> dict[str, Any] | None:
        effort = _settings().settings.agent.reasoning_effort
        return {"enabled": effort != "none", "effort": effort} if effort else None

    @staticmethod
    def _load_fallback_model() -> tuple[Endpoint, ...] | None:
        loaded = _settings()
        return _derived(loaded, "fallbacks", _fallbacks)


def _fallbacks(loaded: LoadedSettings) -> tuple[Endpoint, ...] | None:
    entries = loaded.settings.fallback_providers
    return tuple(_fallback(entry, loaded) for entry in entries) or None


def _fallback(entry: EndpointSettings, loaded: LoadedSettings) -> Endpoint:
    name = entry.provider or "custom"
    chosen = _over(entry, _named(loaded.settings, name))
    made = endpoint(**_keywords(chosen, name, loaded), model=chosen.model)
    return _refined(made, chosen, loaded.settings)


def _refined(made: Endpoint, chosen: EndpointSettings, settings: Settings) -> Endpoint:
    """Return the endpoint with the limits, headers and options that are set for it."""
    chosen = chosen.for_model(made.model)
    agent = settings.agent
    stall = chosen.stall_timeout
    if stall is None:
        stall = agent.local_stream_stale_timeout if made.local else agent.stream_stale_timeout
    first = chosen.first_content_timeout
    if first is None:
        first = (
            stall
            if made.local or agent.stream_read_timeout is None
            else (agent.stream_read_timeout)
        )
    limits = Limits(
        connect=10.0 if chosen.connect_timeout is None else chosen.connect_timeout,
        first_content=first,
        stall=stall,
        whole_answer=chosen.whole_answer_timeout,
        max_concurrent=chosen.max_concurrent_requests,
    )
    options = ModelOptions(
        temperature=chosen.temperature,
        top_p=chosen.top_p,
        seed=chosen.seed,
        max_output_tokens=chosen.max_tokens,
        reasoning_effort=chosen.reasoning_effort or None,
        parallel_tool_calls=chosen.parallel_tool_calls,
        extra=chosen.extra_body,
    )
    return replace(
        made,
        limits=limits,
        options=options,
        headers=chosen.headers,
        context_length=chosen.context_length,
    )


def refine_endpoint(made: Endpoint) -> Endpoint:
    """Return an endpoint of a request with the settings of the provider it belongs to."""
    loaded = _settings()
    chosen = _configured_at(made, loaded) or _configured_as(made.name, loaded.settings)
    return _refined(made, chosen, loaded.settings)


def _configured_at(made: Endpoint, loaded: LoadedSettings) -> EndpointSettings | None:
    """Return the settings that lead to the same address with the same key, the main ones first.

    An endpoint has its profile's name, not the one that the settings gave it.
    """
    settings = loaded.settings
    main = settings.model.provider
    named = {main: _over(settings.model, _named(settings, main))} if main not in ("", AUTO) else {}
    for name, chosen in (
        named | {n: p for n, p in settings.providers.items() if n != main}
    ).items():
        try:
            known = endpoint(**_keywords(chosen, name, loaded))
        except ConfigError:
            continue
        if (known.base_url, known.api_key) == (made.base_url, made.api_key):
            return chosen
    return None


def _configured_as(name: str, settings: Settings) -> EndpointSettings:
    """Return the settings of a provider by its name; the main model's hold for its own alone."""
    chosen = _named(settings, name)
    is_main = _resolve_runtime_agent_kwargs().get("provider") == name
    return _over(settings.model, chosen) if is_main else chosen


def command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that commands of the agent may see.

    None whose name tells of a secret, and none whose value holds something that a log would mask.
    """
    return {
        name: value
        for name, value in environment.items()
        if not _HIDDEN.search(name) and redact(value) == value
    }


def _prepare(loaded: LoadedSettings) -> Path:
    """Make the home folder, read the settings once, and return the folder where tools work."""
    look_at_settings()
    loaded.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = loaded.settings
    workdir = Path(settings.terminal.cwd).expanduser().resolve()
    if not workdir.is_dir():
        raise ConfigError(f"terminal.cwd is not a folder: {workdir}")
    return workdir


async def build_runtime(loaded: LoadedSettings, *, say: Callable[[str], None]) -> AgentRuntime:
    """Open the store and prepare what turns share; a local model is looked for in the background.

    Raises:
        ConfigError, SessionError: the database cannot be used.
    """
    runtime = await prepare_runtime(loaded, say=say)
    try:
        await open_runtime(runtime)
    except BaseException:
        await runtime.aclose()
        raise
    return runtime


async def open_runtime(runtime: AgentRuntime) -> None:
    """Open the store of a prepared runtime.

    Raises:
        ConfigError, SessionError: the database cannot be used.
    """
    runtime.store = await opened(runtime.store)


async def prepare_runtime(loaded: LoadedSettings, *, say: Callable[[str], None]) -> AgentRuntime:
    """Prepare what turns share, but for the store; ``open_runtime`` opens it.

    Raises:
        ConfigError: a setting cannot be used.
    """
    settings = loaded.settings
    agent = settings.agent
    workdir = await asyncio.to_thread(_prepare, loaded)
    url = settings.sessions.database_url.get_secret_value()
    runtime = AgentRuntime(
        store=deferred(partial(open_store, url or loaded.home / DATABASE_NAME)),
        workdir=workdir,
        look=look_at_settings,
        settings=_settings,
        results=loaded.home / "results",
        environment=command_environment(config.process_environment()),
        refine=refine_endpoint,
        policy=RetryPolicy(attempts=agent.api_max_retries),
        persona_file=loaded.home / "SOUL.md",
        tool_options=ToolOptions(
            terminal=TerminalLimits(default_timeout=round(settings.terminal.timeout))
        ),
        disabled_toolsets=tuple(agent.disabled_toolsets),
        budget=Budget(
            steps=agent.max_turns,
            tokens=agent.max_tokens_per_turn,
            seconds=agent.turn_timeout,
            parallel_tools=agent.parallel_tools,
        ),
    )
    if _resolve_runtime_agent_kwargs() == {"provider": AUTO}:
        from hermes.gateway.local_model import LocalModel  # only where no provider is set

        local = LocalModel(loaded, runtime.transport, say=say)
        runtime.unconfigured = local.provider
        runtime.closing.append(local.aclose)
        local.start()
    return runtime


def agent_keywords(loaded: LoadedSettings) -> dict[str, Any]:
    """Return the keywords of an ``AIAgent`` that answers as the settings say."""
    toolsets = tools_config._get_platform_tools(_load_gateway_config(), "cli")
    return {
        **_resolve_runtime_agent_kwargs(),
        "model": _resolve_gateway_model(),
        "fallback_model": GatewayRunner._load_fallback_model(),
        "max_iterations": _current_max_iterations(),
        "reasoning_config": GatewayRunner._load_reasoning_config(),
        "ephemeral_system_prompt": loaded.settings.agent.system_prompt or None,
        "enabled_toolsets": tuple(sorted(toolsets)),
    }
