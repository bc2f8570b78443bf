"""Changing settings: checked first, comments kept, secrets in .env."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hermes.errors import ConfigError
from hermes.hermes_cli import config, config_change

Write = Callable[[str], Path]

SECRET = "sk-live-0123456789abcdefghijkl"

COMMENTED = """\
# my settings
model:
  default: big   # the good one
  # temperature: 1
agent:
    max_turns: 5


terminal: {cwd: "."}  # here
weird: yes
"""


def test_comments_order_and_quotes_stay_when_a_value_changes(
    home: Path, write_config: Write
) -> None:
    path = write_config(COMMENTED)

    change = config_change.set_value(home, "agent.max_turns", 7)

    assert (change.path, change.name, change.overridden_by) == (path, "agent.max_turns", "")
    text = path.read_text()
    for kept in (
        "# my settings",
        "# the good one",
        "# temperature: 1",
        'cwd: "."',
        "# here",
        "weird: yes",
    ):
        assert kept in text
    assert yaml.safe_load(text) == {**yaml.safe_load(COMMENTED), "agent": {"max_turns": 7}}
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in home.iterdir() if "config" in entry.name] == ["config.yaml"]


@pytest.mark.parametrize(
    "value",
    ["yes", "1.5", "null", "2026-01-01", "a: b", "# x", "", " lead", "ü\u2028", "{x}", "- a"],
)
def test_a_text_is_read_back_as_that_text(home: Path, value: str) -> None:
    config_change.set_value(home, "agent.system_prompt", value)

    assert config.load_settings(home).settings.agent.system_prompt == value


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("agent.max_turns", "many", "agent.max_turns must be a whole number"),
        ("agent.max_turn", 3, "did you mean agent.max_turns?"),
        ("model.stream_timeout", 3, "did you mean model.stall_timeout?"),
        ("nonsense", 3, "docs/configuration.md"),
        ("platforms.api_server.extra.port", 70000, "at most 65535"),
        ("agent.max_turns.deeper", 1, "There is no setting"),
        ("providers", "x", "must be a mapping"),
        ("PATH", "x", "no effect in .env"),
        ("API_SERVER_KEY", "changeme", "too weak"),
        ("platforms.api_server.extra.key", "changeme", "too weak"),
        ("", 1, "There is no setting"),
    ],
)
def test_what_cannot_be_right_is_refused_and_nothing_changes(
    home: Path, write_config: Write, key: str, value: object, message: str
) -> None:
    path = write_config(COMMENTED)

    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        config_change.set_value(home, key, value)

    assert path.read_text() == COMMENTED
    assert not (home / ".env").exists()


def test_a_broken_file_is_not_written_over(home: Path, write_config: Write) -> None:
    path = write_config("model: [\n")

    with pytest.raises(ConfigError, match="line 2"):
        config_change.set_value(home, "agent.max_turns", 3)

    assert path.read_text() == "model: [\n"


def test_a_wrong_value_elsewhere_can_be_mended_value_by_value(
    home: Path, write_config: Write
) -> None:
    write_config("agent: {max_turns: many}\nterminal: {timeout: long}\n")

    config_change.set_value(home, "terminal.timeout", 5)
    config_change.set_value(home, "agent.max_turns", 3)

    assert config.load_settings(home).settings.agent.max_turns == 3


@pytest.mark.parametrize(
    "key",
    [
        "model.api_key",
        "providers.lab.api_key",
        "providers.lab.headers.Authorization",
        "sessions.database_url",
        "fallback_providers.0.api_key",
    ],
)
def test_a_secret_goes_to_dotenv_and_comes_out_with_its_key(
    home: Path, write_config: Write, key: str
) -> None:
    path = write_config("fallback_providers: [{provider: openai}]\n")

    change = config_change.set_value(home, key, SECRET)

    assert change.path == home / ".env"
    assert SECRET not in path.read_text()
    assert change.path.stat().st_mode & 0o777 == 0o600
    assert SECRET in str(config.load_config())
    assert not config.load_settings(home).warnings
    assert config_change.unset_value(home, key)
    assert SECRET not in change.path.read_text()
    assert SECRET not in str(config.load_config())


def test_the_servers_key_goes_to_its_variable(home: Path, write_config: Write) -> None:
    path = write_config("platforms: {api_server: {extra: {key: old-weak-one, port: 1}}}\n")

    config_change.set_value(home, "platforms.api_server.extra.key", "Tz4-9pLq_w7Xb2Rm")

    assert (home / ".env").read_text() == "API_SERVER_KEY=Tz4-9pLq_w7Xb2Rm\n"
    assert "old-weak-one" not in path.read_text()


def test_a_variable_is_set_and_taken_out(home: Path) -> None:
    config_change.set_value(home, "OPENAI_API_KEY", SECRET)
    assert config.load_settings(home).environment["OPENAI_API_KEY"] == SECRET

    assert config_change.unset_value(home, "OPENAI_API_KEY")
    assert not config_change.unset_value(home, "OPENAI_API_KEY")


def test_a_variable_that_stands_over_a_key_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_SERVER_PORT", "1234")

    change = config_change.set_value(home, "platforms.api_server.extra.port", 1)

    assert change.overridden_by == "API_SERVER_PORT"


def test_a_short_model_line_becomes_a_section(home: Path, write_config: Write) -> None:
    path = write_config("model: big\n")

    config_change.set_value(home, "model.provider", "openai")

    assert yaml.safe_load(path.read_text()) == {"model": {"default": "big", "provider": "openai"}}


def test_taking_out_the_last_key_takes_its_sections_out(home: Path, write_config: Write) -> None:
    path = write_config("platforms: {api_server: {extra: {port: 1}}}\nagent: {max_turns: 1}\n")

    assert config_change.unset_value(home, "platforms.api_server.extra.port")
    assert not config_change.unset_value(home, "platforms.api_server.extra.port")
    assert yaml.safe_load(path.read_text()) == {"agent": {"max_turns": 1}}
    assert config_change.unset_value(home, "agent.max_turns")
    assert config.load_settings(home).settings.agent.max_turns == 90


def test_an_unknown_key_in_the_file_can_be_taken_out(home: Path, write_config: Write) -> None:
    write_config("model: {stream_timeout: 5}\n")

    assert config_change.unset_value(home, "model.stream_timeout")
    assert config.load_settings(home).warnings == ()


def test_a_file_behind_a_link_is_changed_and_the_link_stays(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.yaml"
    target.write_text("agent: {max_turns: 1}\n")
    (home / "config.yaml").symlink_to(target)

    config_change.set_value(home, "agent.max_turns", 2)

    assert (home / "config.yaml").is_symlink()
    assert yaml.safe_load(target.read_text()) == {"agent": {"max_turns": 2}}


def test_a_home_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="Cannot write"):
        config_change.set_value(tmp_path / "file" / "home", "agent.max_turns", 2)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("model.provider", "opnai", "did you mean openai"),
        ("model.base_url", "ftp://x", "https://host/v1"),
        ("fallback_providers", [{"provider": "antropic"}], "did you mean anthropic"),
        ("providers.lab.base_url", "http://a b", "https://host/v1"),
    ],
)
def test_a_provider_or_address_that_does_not_exist_is_refused_before_it_is_written(
    home: Path, key: str, value: object, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config_change.set_value(home, key, value)
    assert told in caught.value.message
    assert not (home / "config.yaml").exists()


def test_a_name_under_providers_is_a_provider(home: Path) -> None:
    config_change.set_value(home, "providers.lab.base_url", "http://127.0.0.1:9/v1")
    config_change.set_value(home, "model.provider", "lab")
    assert config.load_settings(home).settings.model.provider == "lab"


def test_a_running_server_keeps_its_provider_when_the_file_names_none_that_exists(
    home: Path,
) -> None:
    path = home / "config.yaml"
    path.write_text("model: {provider: openai}\n")
    assert config.current_settings(home).settings.model.provider == "openai"
    path.write_text("model: {provider: opnai-typo}\n")
    assert config.current_settings(home).settings.model.provider == "openai"
