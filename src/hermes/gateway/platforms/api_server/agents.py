"""From a request's wishes to an agent: which model and provider answer, then the turn itself.

The functions that read settings are called through their modules, so that an embedder may
replace them.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hermes import run_agent
from hermes.gateway import run as gateway_run
from hermes.gateway.platforms.api_server.host import Host
from hermes.hermes_cli import models, tools_config
from hermes.messages import ModelOptions

_PROVIDER_KEYS = ("provider", "api_key", "base_url", "api_mode", "credential_pool")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWishes:
    """What a request asks of the agent that answers it."""

    session_id: str
    route: Mapping[str, Any] | None = None
    requested_model: str | None = None
    requested_provider: str | None = None
    model_options: Mapping[str, Any] | None = None
    gateway_session_key: str | None = None
    ephemeral_system_prompt: str | None = None
    options: ModelOptions = field(default_factory=ModelOptions)
    turn: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    model: str
    provider: Mapping[str, Any]


def create_agent(host: Host, **keywords: Any) -> Any:
    """Return an agent for one turn. The session's own choice wins, then the route, then the
    request, then the settings; without any model, the provider's default, then the last one
    that this session key had.
    """
    wishes = AgentWishes(**keywords)
    choice = _choose(host, wishes)
    settings = gateway_run._load_gateway_config()
    checkpoints = cast("Mapping[str, Any]", settings.get("checkpoints") or {})
    optional: dict[str, Any] = dict(wishes.turn)
    runtime = getattr(host, "_runtime", None)
    if runtime is not None:
        optional |= {"runtime": runtime, "options": wishes.options}
    return run_agent.AIAgent(
        **choice.provider,
        model=choice.model,
        session_id=wishes.session_id,
        max_iterations=gateway_run._current_max_iterations(),
        enabled_toolsets=sorted(tools_config._get_platform_tools(settings, "api_server")),
        reasoning_config=_reasoning(wishes),
        fallback_model=gateway_run.GatewayRunner._load_fallback_model(),
        ephemeral_system_prompt=wishes.ephemeral_system_prompt,
        checkpoints_enabled=bool(checkpoints.get("enabled", False)),
        checkpoint_max_snapshots=checkpoints.get("max_snapshots"),
        checkpoint_max_total_size_mb=checkpoints.get("max_total_size_mb"),
        checkpoint_max_file_size_mb=checkpoints.get("max_file_size_mb"),
        **optional,
    )


def _choose(host: Host, wishes: AgentWishes) -> _Choice:
    key = wishes.gateway_session_key or wishes.session_id
    override = host._session_model_override_for(key)
    if override:
        return _Choice(model=str(override.get("model") or ""), provider=_known(override))
    route = wishes.route
    if route is not None:
        # The provider may be one that the settings name; resolved, it has another name.
        provider = _known(route) | _provider(str(route.get("provider") or "")) | _own(route)
        if route.get("base_url") and not (route.get("provider") or route.get("api_key")):
            # The main provider's key belongs to its own address and goes to no other.
            provider.pop("api_key", None)
        model = str(route.get("model") or "") or gateway_run._resolve_gateway_model()
    else:
        provider = _provider(wishes.requested_provider or "")
        model = wishes.requested_model or ""
        if not model and not wishes.requested_provider:
            model = gateway_run._resolve_gateway_model()
    if not model and provider.get("provider"):
        model = models.get_default_model_for_provider(provider["provider"]) or ""
    if model:
        _remember(host, key, model)
    return _Choice(model=model or host._last_resolved_model.get(key, ""), provider=provider)


def _provider(name: str) -> dict[str, Any]:
    if name:
        return _known(gateway_run._resolve_runtime_agent_kwargs_for_provider(name))
    return _known(gateway_run._resolve_runtime_agent_kwargs())


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in _PROVIDER_KEYS if values.get(name)}


def _own(route: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in _known(route).items() if name != "provider"}


_REMEMBERED = 1000


def _remember(host: Host, key: str, model: str) -> None:
    known = host._last_resolved_model
    known.pop(key, None)
    known[key] = model
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]


def _reasoning(wishes: AgentWishes) -> Mapping[str, Any] | None:
    options = wishes.model_options or {}
    if isinstance(options.get("reasoning"), Mapping):
        return cast("Mapping[str, Any]", options["reasoning"])
    effort = options.get("reasoning_effort")
    if isinstance(effort, str):
        return {"enabled": effort != "none", "effort": effort}
    return gateway_run.GatewayRunner._load_reasoning_config()


_TURN_KEYWORDS = (
    "event_sink", "control", "live", "stored", "stream_delta_callback", "tool_start_callback",
    "tool_complete_callback", "reasoning_callback",
)  # fmt: skip


async def run_agent_turn(host: Host, **keywords: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """Run one turn; return the agent's result and the tokens that it used."""
    user_message = keywords.pop("user_message")
    history = keywords.pop("conversation_history")
    turn = {name: keywords.pop(name) for name in _TURN_KEYWORDS if name in keywords}
    runtime = getattr(host, "_runtime", None)
    if runtime is not None:
        await runtime.refresh()
    else:
        turn = {name: value for name, value in turn.items() if name.endswith("_callback")}
    agent = host._create_agent(**keywords, turn=turn)
    result = agent.run_conversation(
        user_message=user_message,
        conversation_history=history,
        task_id=keywords["session_id"],
    )
    if inspect.isawaitable(result):
        result = await result
    outcome = cast("dict[str, Any]", result)
    if isinstance(agent.session_id, str):
        outcome.setdefault("session_id", agent.session_id)
    return outcome, _counts(agent)


def _counts(agent: Any) -> dict[str, int]:
    counts = {
        "input_tokens": agent.session_prompt_tokens,
        "output_tokens": agent.session_completion_tokens,
        "total_tokens": agent.session_total_tokens,
    }
    details = {
        "cached_tokens": agent.session_cached_tokens,
        "reasoning_tokens": agent.session_reasoning_tokens,
    }
    return counts | {name: value for name, value in details.items() if isinstance(value, int)}
