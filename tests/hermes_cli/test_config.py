"""Reading the settings of a home folder."""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.errors import ConfigError
from hermes.gateway import run
from hermes.hermes_cli import config, key_check
from hermes.providers.registry import endpoint

Write = Callable[[str], Path]

SECRET = "sk-live-0123456789abcdefghijkl"

PUBLIC_HOME = """
_config_version: 50
model:
  model: anthropic/claude-opus-4.6
  provider: custom
  base_url: http://127.0.0.1:9/v1
  api_key: ${UPSTREAM_KEY}
  context_length: 131072
  default_headers: {X-Client: hermes}
  streaming: true
providers:
  proxy:
    url: http://127.0.0.1:8/v1
    key_env: PROXY_KEY
    default_model: big
    stale_timeout_seconds: 7
    models: [big, small]
custom_providers:
  - {name: lab, base_url: "http://127.0.0.1:7/v1", api_mode: chat_completions}
fallback_model: {provider: openrouter, model: some/model}
gateway:
  multiplex_profiles: false
  api_server: {max_concurrent_runs: 0}
  platforms:
    api_server:
      enabled: true
      extra: {port: 8700, cors_origins: "http://a.example, http://b.example"}
platforms:
  telegram: {enabled: false}
  api_server:
    extra:
      port: 8701
      model_routes: {fast: {model: small}}
platform_toolsets:
  api_server: [hermes-api-server]
agent:
  max_turns: 40
  reasoning_effort: off
  environment_probe: true
  disabled_toolsets:
terminal: {backend: local, cwd: ., timeout: 90, docker_image: x, home_mode: auto}
display: {skin: mono, streaming: true}
memory: {memory_enabled: true}
skills: {}
mcp_servers: {x: {command: y}}
auxiliary: {vision: {provider: auto}}
cron: {catch_up_missed: true}
approvals: {mode: smart}
compression: {enabled: true}
browser: {inactivity_timeout: 120}
"""


def test_a_home_of_the_public_agent_is_read_unchanged_with_one_warning(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", SECRET)
    monkeypatch.setenv("PROXY_KEY", "proxy-key")
    write_config(PUBLIC_HOME)

    loaded = config.load_settings()

    settings = loaded.settings
    assert settings.model.default == "anthropic/claude-opus-4.6"
    assert settings.model.api_key.get_secret_value() == SECRET
    assert settings.model.context_length == 131072
    assert settings.model.headers == {"X-Client": "hermes"}
    proxy = settings.providers["proxy"]
    assert (proxy.base_url, proxy.model, proxy.stall_timeout) == (
        "http://127.0.0.1:8/v1",
        "big",
        7.0,
    )
    assert proxy.api_key.get_secret_value() == "proxy-key"
    assert set(proxy.models) == {"big", "small"}
    assert settings.providers["lab"].base_url == "http://127.0.0.1:7/v1"
    assert [entry.model for entry in settings.fallback_providers] == ["some/model"]
    extra = settings.platforms.api_server.extra
    assert (settings.platforms.api_server.enabled, extra.port) == (True, 8701)
    assert extra.cors_origins == ["http://a.example", "http://b.example"]
    assert extra.model_routes == {"fast": {"model": "small"}}
    assert settings.gateway.api_server.max_concurrent_runs == 0
    assert (settings.agent.max_turns, settings.agent.reasoning_effort) == (40, "none")
    assert settings.terminal.timeout == 90.0
    assert len(loaded.warnings) == 1
    named = loaded.warnings[0]
    for key in ("memory", "skills", "mcp_servers", "auxiliary", "cron", "approvals", "compression"):
        assert f" {key}" in named
    for key in ("terminal.docker_image", "platforms.telegram", "model.streaming", "display"):
        assert key in named


def test_without_any_file_the_defaults_of_the_public_agent_hold(home: Path) -> None:
    loaded = config.load_settings()

    settings = loaded.settings
    assert (settings.model.provider, settings.model.default) == ("auto", "")
    extra = settings.platforms.api_server.extra
    assert (extra.host, extra.port, extra.key) == ("127.0.0.1", 8642, None)
    assert not settings.platforms.api_server.enabled
    assert settings.gateway.api_server.max_concurrent_runs == 64  # theirs is 10: a thread a turn
    assert (settings.agent.max_turns, settings.agent.api_max_retries) == (90, 3)
    assert settings.terminal.timeout == 180.0
    assert (loaded.home, loaded.warnings) == (home, ())


@pytest.mark.parametrize(
    ("text", "unknown", "meant"),
    [
        ("model: {timeout: 5}", "model.timeout", "model.stall_timeout"),
        ("model: {stream_timeout: 5}", "model.stream_timeout", "model.stall_timeout"),
        ("model: {request_timeout: 5}", "model.request_timeout", "model.stall_timeout"),
        ("providers: {a: {timeout: 5}}", "providers.a.timeout", "providers.a.stall_timeout"),
        (
            "fallback_providers: [{provider: openai, stream_timeout: 5}]",
            "fallback_providers.0.stream_timeout",
            "fallback_providers.0.stall_timeout",
        ),
        ("stream_timeout: 5", "stream_timeout", "model.stall_timeout"),
        ("agent: {timeout: 5}", "agent.timeout", "agent.turn_timeout"),
        ("agent: {max_turn: 5}", "agent.max_turn", "agent.max_turns"),
        ("modle: {}", "modle", "model"),
        ("model: {tempreature: 1}", "model.tempreature", "model.temperature"),
        ("terminal: {timout: 1}", "terminal.timout", "terminal.timeout"),
        ("max_concurrent_runs: 3", "max_concurrent_runs", "gateway.api_server.max_concurrent_runs"),
        (
            "platforms: {api_server: {port: 1}}",
            "platforms.api_server.port",
            "platforms.api_server.extra.port",
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_right_one_which_exists(
    write_config: Write, text: str, unknown: str, meant: str
) -> None:
    write_config(text)

    warnings = config.load_settings().warnings

    assert warnings == (f"config.yaml: unknown key {unknown}; did you mean {meant}?",)
    assert key_check.is_known_key(meant.split("."))


def test_a_key_like_nothing_is_named_without_a_guess(write_config: Write) -> None:
    write_config("colour_of_the_sky: blue")

    assert config.load_settings().warnings == (
        "config.yaml: unknown key colour_of_the_sky; it has no effect.",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"agent: {{max_turns: {SECRET}}}",
            "agent.max_turns must be a whole number, but holds text",
        ),
        ("agent: {max_turns: 0}", "agent.max_turns must be at least 1, but holds the number 0"),
        ("agent: {max_turns: yes}", "agent.max_turns must be a number, but holds true"),
        ("agent: {max_turns: 1.5}", "agent.max_turns must be a whole number"),
        ("agent: [1]", "agent must be a mapping, but holds a list"),
        ("terminal: {timeout: .inf}", "terminal.timeout must be a finite number"),
        ("platforms: {api_server: {extra: {port: 70000}}}", "must be at most 65535"),
        ("platforms: {api_server: {extra: {keepalive_seconds: 30}}}", "must be less than 30"),
        ("platforms: {api_server: {extra: {key: [a]}}}", "must be text, but holds a list"),
        ("agent: {reasoning_effort: banana}", "'low', 'medium', 'high' or 'xhigh'"),
        ("fallback_providers: [openai]", "fallback_providers.0 must be a mapping, but holds text"),
        ("terminal: {backend: docker}", "terminal.backend must be one of 'local'"),
        ("model: {parallel_tool_calls: sometimes}", "must be true or false, but holds text"),
    ],
)
def test_a_wrong_value_is_named_by_key_and_kind_and_never_repeated(
    write_config: Write, text: str, message: str
) -> None:
    path = write_config(text)

    with pytest.raises(ConfigError) as caught:
        config.load_settings()

    assert caught.value.code == "wrong_value"
    assert str(path) in caught.value.message
    assert message in caught.value.message
    assert SECRET not in caught.value.message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("model:\n  default: [a, b\nagent: 1\n", "line 3, column"),
        ("agent:\n\tmax_turns: 1\n", "line 2, column 1"),
        ("model: 'open\n", "line"),
        ("a: b: c\n", "line 1, column"),
    ],
)
def test_broken_yaml_is_named_by_line_and_column_and_left_alone(
    write_config: Write, text: str, place: str
) -> None:
    path = write_config(text)

    with pytest.raises(ConfigError) as caught:
        config.load_settings()

    assert caught.value.code == "config_syntax"
    assert place in caught.value.message
    assert path.read_text() == text


def test_a_file_that_is_no_mapping_or_no_text_is_refused(write_config: Write) -> None:
    path = write_config("- a\n- b\n")
    with pytest.raises(ConfigError, match="but holds a list"):
        config.load_settings()

    path.write_bytes(b"model: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8") as caught:
        config.load_settings()
    assert caught.value.code == "config_unreadable"


def test_a_switch_that_this_version_cannot_follow_is_named(write_config: Write) -> None:
    write_config("gateway: {multiplex_profiles: true}")

    (warning,) = config.load_settings().warnings

    assert "gateway.multiplex_profiles has no effect" in warning


def test_a_key_that_stands_twice_is_named_with_both_lines(write_config: Write) -> None:
    write_config("agent:\n  max_turns: 5\n  max_turns: 6\n")

    loaded = config.load_settings()

    assert loaded.settings.agent.max_turns == 6
    assert "agent.max_turns (lines 2 and 3)" in loaded.warnings[0]


def test_the_environment_stands_over_dotenv_and_both_over_the_file(
    home: Path, write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(
        "platforms: {api_server: {extra: {port: 1001, host: 127.0.0.3, model_name: file}}}\n"
        "agent: {stream_read_timeout: 1}\n"
    )
    (home / ".env").write_text(
        "export API_SERVER_PORT=1002 # a remark\nAPI_SERVER_MODEL_NAME='from dotenv'\n"
        "HERMES_STREAM_READ_TIMEOUT=33\nHERMES_STREAM_STALE_TIMEOUT=44\n"
        "HERMES_LOCAL_STREAM_STALE_TIMEOUT=55\n"
    )
    monkeypatch.setenv("API_SERVER_PORT", "1003")
    monkeypatch.setenv("API_SERVER_MODEL_NAME", "")

    loaded = config.load_settings()

    extra = loaded.settings.platforms.api_server.extra
    assert (extra.port, extra.host, extra.model_name) == (1003, "127.0.0.3", "from dotenv")
    agent = loaded.settings.agent
    assert (agent.stream_read_timeout, agent.stream_stale_timeout) == (33.0, 44.0)
    assert agent.local_stream_stale_timeout == 55.0
    assert loaded.environment["API_SERVER_PORT"] == "1003"


def test_a_wrong_variable_is_named_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_SERVER_PORT", "eighty")

    with pytest.raises(ConfigError, match=r"API_SERVER_PORT.*must be a whole number"):
        config.load_settings()


@pytest.mark.parametrize(
    ("variables", "enabled"),
    [
        ({}, False),
        ({"API_SERVER_ENABLED": "yes"}, True),
        ({"API_SERVER_KEY": "k"}, True),
        ({"API_SERVER_KEY": "k", "API_SERVER_ENABLED": "0"}, False),
        ({"API_SERVER_KEY": " "}, False),
    ],
)
def test_the_http_surface_is_on_by_switch_or_by_key(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], enabled: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert config.load_settings().settings.platforms.api_server.enabled is enabled


def test_origins_are_a_list_without_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_SERVER_CORS_ORIGINS", "http://a.example , ,http://b.example,")

    expected = ["http://a.example", "http://b.example"]
    assert config.load_settings().settings.platforms.api_server.extra.cors_origins == expected
    assert config.load_config()["platforms"]["api_server"]["extra"]["cors_origins"] == expected


def test_a_reference_to_a_missing_variable_is_named_and_never_sent(write_config: Write) -> None:
    write_config("model: {api_key: '${NOT_THERE}', key_env: NOR_THIS}")

    loaded = config.load_settings()

    assert loaded.settings.model.api_key.get_secret_value() == ""
    assert loaded.warnings == (
        "config.yaml: model.api_key refers to NOT_THERE, which is not set.",
        "config.yaml: key_env names NOR_THIS, which is not set.",
    )


def test_a_dollar_in_dotenv_stands_as_it_is(home: Path) -> None:
    (home / ".env").write_text("SOME_KEY='a$b${c}'\n")

    assert config.load_settings().environment["SOME_KEY"] == "a$b${c}"


def test_settings_never_show_a_secret_in_their_representation(
    home: Path, write_config: Write
) -> None:
    write_config(
        f"model: {{api_key: {SECRET}, headers: {{X-Token: {SECRET}}}}}\n"
        f"sessions: {{database_url: 'postgresql://u:{SECRET}@h/d'}}\n"
        f"platforms: {{api_server: {{extra: {{key: {SECRET}}}}}}}\n"
    )
    (home / ".env").write_text(f"OPENAI_API_KEY={SECRET}\n")

    assert SECRET not in repr(config.load_settings())


def test_a_change_of_a_file_or_variable_is_seen_and_no_change_costs_next_to_nothing(
    write_config: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config("agent: {max_turns: 5}")
    first = config.load_settings()
    assert config.load_settings() is first

    path = write_config("agent: {max_turns: 6}")
    os.utime(path, ns=(1, time.time_ns()))
    assert config.load_settings().settings.agent.max_turns == 6
    monkeypatch.setenv("API_SERVER_PORT", "1234")
    assert config.load_settings().settings.platforms.api_server.extra.port == 1234
    path.unlink()
    assert config.load_settings().settings.agent.max_turns == 90


def test_after_a_change_for_the_worse_a_running_process_keeps_the_last_settings(
    write_config: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write_config("agent: {max_turns: 5}")
    config.current_settings()

    write_config("agent: {max_turns: five}")
    with caplog.at_level(logging.ERROR):
        kept = [config.current_settings() for _ in range(3)]

    assert [loaded.settings.agent.max_turns for loaded in kept] == [5, 5, 5]
    assert len(caplog.records) == 1
    assert "agent.max_turns" in caplog.text
    with pytest.raises(ConfigError):
        config.load_settings()
    write_config("agent: {max_turns: 66}")
    assert config.current_settings().settings.agent.max_turns == 66


def test_the_first_settings_must_be_good(write_config: Write) -> None:
    write_config("agent: {max_turns: five}")

    with pytest.raises(ConfigError):
        config.current_settings()


def test_other_values_for_the_http_surface_are_checked_too() -> None:
    loaded = config.load_settings()

    assert loaded.with_api_server(port=0).settings.platforms.api_server.extra.port == 0
    with pytest.raises(ConfigError, match=r"--port .port. must be at most 65535"):
        loaded.with_api_server(port=99999)


def test_a_limit_of_one_model_wins_over_the_endpoints_and_the_usual_one(
    write_config: Write,
) -> None:
    write_config(
        "model: {provider: custom, base_url: 'http://127.0.0.1:9/v1', default: deepseek-r1,\n"
        "  first_content_timeout: 50, stall_timeout: 40,\n"
        "  models: {deepseek-r1: {timeout_seconds: 9, stale_timeout_seconds: 3}}}\n"
    )
    made = endpoint(**run._resolve_runtime_agent_kwargs(), model=run._resolve_gateway_model())

    limits = run.refine_endpoint(made).limits

    assert (limits.first_content, limits.stall, limits.whole_answer) == (50.0, 3.0, 9.0)


def test_what_is_set_for_a_model_reaches_its_endpoint_and_nothing_else_does(
    write_config: Write,
) -> None:
    write_config(
        "model: {provider: custom, base_url: 'http://127.0.0.1:9/v1', default: m,\n"
        "  temperature: 0.2, parallel_tool_calls: false, stall_timeout: 3}\n"
    )
    made = endpoint(**run._resolve_runtime_agent_kwargs(), model=run._resolve_gateway_model())
    refined = run.refine_endpoint(made)

    assert (refined.options.temperature, refined.options.parallel_tool_calls) == (0.2, False)
    assert refined.limits.stall == 3.0
    assert (refined.options.top_p, refined.options.max_output_tokens) == (None, None)
