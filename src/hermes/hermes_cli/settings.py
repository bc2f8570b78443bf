"""The settings as types: what config.yaml may hold, the defaults and the bounds.

Files and variables are read by ``config``; keys that stand here nowhere are named by
``key_check``.
"""

from collections.abc import Container
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)
from pydantic_core import PydanticCustomError

from hermes.errors import ConfigError
from hermes.hermes_cli import value_errors
from hermes.providers.registry import find_profile
from hermes.providers.urls import normalise_base_url


def _list(value: Any) -> Any:
    if isinstance(value, str):
        return [item for part in value.split(",") if (item := part.strip())]
    return value


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("is not a number")  # noqa: TRY004 - pydantic reports a ValueError
    return value


def _effort(value: Any) -> Any:
    """``off`` is a boolean in YAML; people mean the word."""
    return "none" if value is False else value


Words = Annotated[list[str], BeforeValidator(_list)]
Whole = Annotated[int, BeforeValidator(_no_boolean), Field(ge=0)]
Count = Annotated[int, BeforeValidator(_no_boolean), Field(ge=1)]
Number = Annotated[float, BeforeValidator(_no_boolean)]
Seconds = Annotated[float, BeforeValidator(_no_boolean), Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[float, BeforeValidator(_no_boolean), Field(gt=0, allow_inf_nan=False)]
Effort = Annotated[
    Literal["", "none", "minimal", "low", "medium", "high", "xhigh"], BeforeValidator(_effort)
]
Port = Annotated[int, BeforeValidator(_no_boolean), Field(ge=0, le=65535)]


class Section(BaseModel):
    """A part of the settings."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True
    )


class CallSettings(Section):
    """How a model is called. What is not set is left to the endpoint and not sent.

    Times are seconds: ``connect_timeout`` to reach it, ``first_content_timeout`` until the first
    word, ``stall_timeout`` between two pieces of content, ``whole_answer_timeout`` for an answer
    that is not streamed. ``extra_body`` is laid over the request body as it stands.
    """

    context_length: Whole = 0
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    max_tokens: Count | None = None
    seed: int | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: Effort = ""
    connect_timeout: Limit | None = None
    first_content_timeout: Limit | None = None
    stall_timeout: Limit | None = None
    whole_answer_timeout: Limit | None = None
    extra_body: dict[str, Any] = {}


class EndpointSettings(CallSettings):
    """A place where a model answers: a named provider with what is set in place of its values.

    ``key_env`` names the variable that holds the key. ``models`` holds what differs by model.
    """

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    key_env: str = ""
    api_mode: str = ""
    headers: dict[str, str] = Field(default={}, repr=False)
    max_concurrent_requests: Whole = 0
    models: dict[str, CallSettings] = {}

    def for_model(self, model: str) -> Self:
        """Return the same with what ``models`` sets for one model in place of its own."""
        entry = self.models.get(model)
        if entry is None:
            return self
        return self.model_copy(
            update={name: getattr(entry, name) for name in entry.model_fields_set}
        )


class ModelSettings(EndpointSettings):
    """The main model; provider ``auto`` takes the first one that has a key, else a local one."""

    provider: str = "auto"
    default: str = ""


class APIServerExtra(Section):
    """Where the HTTP surface listens and what it shows.

    ``tool_progress``: ``events`` sends tool progress to every client, ``opt_in`` to those that
    ask, ``off`` to none. ``coalesce_seconds`` gathers text before it is sent.
    """

    host: str = "127.0.0.1"
    port: Port = 8642
    key: str | None = Field(default=None, repr=False)
    cors_origins: Words = []
    model_name: str = ""
    model_routes: dict[str, Any] = {}
    direct_model_requests: bool = False
    strict_model_names: bool = False
    tool_progress: Literal["events", "opt_in", "off"] | None = None
    coalesce_seconds: Seconds | None = None
    keepalive_seconds: Annotated[Limit, Field(lt=30)] | None = None


class APIServerPlatform(Section):
    """The HTTP surface as one of the platforms."""

    enabled: bool = False
    extra: APIServerExtra = APIServerExtra()


class Platforms(Section):
    """The surfaces on which the agent is reached."""

    api_server: APIServerPlatform = APIServerPlatform()


class GatewayAPIServer(Section):
    """Limits of the HTTP surface; 0 means no cap."""

    max_concurrent_runs: Whole = 64


class GatewaySettings(Section):
    """The gateway behind all surfaces."""

    api_server: GatewayAPIServer = GatewayAPIServer()
    multiplex_profiles: bool = False


class AgentSettings(Section):
    """What a turn may do, and for how long it is waited.

    Tokens and seconds are per turn, 0 for no limit. The stream times hold for every endpoint
    that has none of its own; not set, they depend on the endpoint and its model.
    """

    max_turns: Count = 90
    max_tokens_per_turn: Whole = 0
    turn_timeout: Seconds = 0.0
    parallel_tools: Count = 8
    api_max_retries: Count = 3
    stream_stale_timeout: Limit | None = None
    stream_read_timeout: Limit | None = None
    local_stream_stale_timeout: Limit | None = None
    reasoning_effort: Effort = ""
    restart_drain_timeout: Seconds = 30.0
    disabled_toolsets: Words = []
    system_prompt: str = ""


class TerminalSettings(Section):
    """Where commands run, and for how many seconds at most."""

    backend: Literal["local"] = "local"
    cwd: str = "."
    timeout: Limit = 180.0


class SessionSettings(Section):
    """Where conversations are kept; no URL means a SQLite file in the home folder."""

    database_url: SecretStr = SecretStr("")


class LocalSettings(Section):
    """The embedded local model, and whether local servers are looked for on this machine."""

    enabled: bool = True
    model: str = "qwen2.5-coder-0.5b"
    detect_servers: bool = True


def _check_endpoint(place: tuple[str, ...], entry: EndpointSettings, named: Container[str]) -> None:
    """Refuse a provider that does not exist and an address that is none."""
    name = entry.provider.strip()
    try:
        if name and name != "auto" and name not in named:
            find_profile(name)
        # One with credentials in it is refused where it is used: what is shown must still load.
        if entry.base_url and "@" not in entry.base_url:
            normalise_base_url(entry.base_url)
    except ConfigError as error:
        key = "provider" if error.code == "unknown_provider" else "base_url"
        raise PydanticCustomError(
            value_errors.UNUSABLE,
            "{reason}",
            {"place": (*place, key), "reason": error.message},
        ) from None


class Settings(Section):
    """Everything that can be set."""

    model: ModelSettings = ModelSettings()
    providers: dict[str, EndpointSettings] = {}
    fallback_providers: list[EndpointSettings] = []
    platforms: Platforms = Platforms()
    gateway: GatewaySettings = GatewaySettings()
    platform_toolsets: dict[str, Words] = {}
    agent: AgentSettings = AgentSettings()
    terminal: TerminalSettings = TerminalSettings()
    sessions: SessionSettings = SessionSettings()
    local: LocalSettings = LocalSettings()

    @model_validator(mode="after")
    def _endpoints_exist(self) -> Self:
        _check_endpoint(("model",), self.model, self.providers)
        for name, entry in self.providers.items():
            _check_endpoint(("providers", name), entry, self.providers)
        for number, entry in enumerate(self.fallback_providers):
            _check_endpoint(("fallback_providers", str(number)), entry, self.providers)
        return self
