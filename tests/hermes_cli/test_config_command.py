"""``hermes config``: shown, changed, and never a secret in what is printed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hermes.hermes_cli import main, masking
from support.program import Program

Write = Callable[[str], Path]

SECRETS = [f"sk-fake-{number:02d}-abcdefghijklmnopqrstuvwx" for number in range(12)]
SHORT = "hunter2!"

FULL_OF_SECRETS = f"""
model: {{default: m, api_key: {SECRETS[0]}, headers: {{X-Api-Token: {SECRETS[1]}}}}}
providers:
  lab: {{base_url: 'http://u:{SHORT}@127.0.0.1:9/v1', api_key: '{SHORT}'}}
fallback_providers: [{{provider: openai, api_key: {SECRETS[3]}}}]
platforms:
  api_server:
    extra: {{key: {SECRETS[4]}, model_routes: {{fast: {{model: x, api_key: {SECRETS[5]}}}}}}}
  telegram: {{token: {SECRETS[6]}}}
sessions: {{database_url: 'postgresql://me:{SHORT}@db/x'}}
mcp_servers: {{github: {{command: x, env: {{ANY: {SECRETS[8]}}}, args: [--token, {SECRETS[9]}]}}}}
terminal: {{sudo_password: {SHORT}}}
agent: {{system_prompt: 'the key is {SECRETS[10]}'}}
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["show", "--all"],
        ["show", "--json"],
        ["show", "--all", "--json"],
        ["check"],
        ["get", "model"],
        ["get", "model.api_key"],
        ["get", "model.headers"],
        ["get", "providers"],
        ["get", "fallback_providers"],
        ["get", "platforms"],
        ["get", "platforms.api_server.extra.key"],
        ["get", "sessions.database_url"],
        ["get", "agent.system_prompt"],
        ["get", "OPENAI_API_KEY"],
    ],
)
def test_no_command_prints_a_secret(
    home: Path, write_config: Write, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    write_config(FULL_OF_SECRETS)
    (home / ".env").write_text(f"OPENAI_API_KEY={SECRETS[11]}\n")

    assert main.run(["config", *arguments]) == 0

    shown = capsys.readouterr()
    for secret in (*SECRETS, SHORT):
        assert secret not in shown.out + shown.err


def test_a_value_that_is_set_and_read_back_is_the_same(program: Program, home: Path) -> None:
    assert program("config", "set", "model.temperature", "0.2").returncode == 0
    assert (
        program("config", "set", "platforms.api_server.extra.cors_origins", "[a, b]").returncode
        == 0
    )
    assert program("config", "set", "model.default", "2026-01-01").returncode == 0

    assert program("config", "get", "model.temperature").stdout == "0.2\n"
    assert program("config", "get", "model.default").stdout == "2026-01-01\n"
    stored = yaml.safe_load((home / "config.yaml").read_text())
    assert stored["platforms"]["api_server"]["extra"]["cors_origins"] == ["a", "b"]
    assert program("config", "unset", "model.temperature").returncode == 0
    assert program("config", "unset", "model.temperature").returncode == 2
    assert program("config", "get", "agent.max_turns").stdout == "90\n"


def test_a_secret_can_come_through_a_pipe_and_is_masked(program: Program, home: Path) -> None:
    ended = program("config", "set", "OPENAI_API_KEY", text=f"{SECRETS[0]}\n")

    assert ended.returncode == 0
    assert SECRETS[0] not in ended.stdout + ended.stderr
    assert (home / ".env").read_text() == f"OPENAI_API_KEY={SECRETS[0]}\n"
    assert program("config", "get", "OPENAI_API_KEY").stdout == "sk-…uvwx\n"


def test_check_names_warnings_and_is_strict_on_request(
    write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config("model: {stream_timeout: 5}\nmemory: {}\n")

    assert main.run(["config", "check"]) == 0
    assert main.run(["config", "check", "--strict"]) == 1

    shown = capsys.readouterr()
    assert "did you mean model.stall_timeout?" in shown.err
    assert "have no effect: memory" in shown.err
    assert "can be used; 2 warning(s)" in shown.out


def test_json_is_json(write_config: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write_config("agent: {max_turns: 7}")

    assert main.run(["config", "show", "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == {"agent": {"max_turns": 7}}


def test_a_note_tells_that_a_variable_stands_over_a_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("API_SERVER_HOST", "127.0.0.9")

    assert main.run(["config", "set", "platforms.api_server.extra.host", "127.0.0.8"]) == 0

    assert "API_SERVER_HOST is set and stands over it" in capsys.readouterr().err


def test_unknown_names_end_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["config", "get", "model.temprature"]) == 2
    assert main.run(["config", "get", "NOT_SET_KEY"]) == 2
    assert main.run(["config", "unset", "agent.max_turn"]) == 2

    assert "did you mean model.temperature?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("", ""),
        ("short", "***"),
        ("sk-abcdefghijklmnopqrstuvwxyz", "sk-…wxyz"),
        ("abcdefghijklmnopqrstuvwxyz0", "…xyz0"),
        ("a" * 23, "***"),
    ],
)
def test_of_a_long_secret_the_last_four_characters_are_shown(secret: str, shown: str) -> None:
    assert masking.mask(secret) == shown
