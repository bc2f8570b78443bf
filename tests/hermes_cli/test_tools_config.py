"""Which toolsets a surface offers, by the settings."""

from pathlib import Path
from typing import Any

import pytest

from hermes import toolsets
from hermes.hermes_cli import config, profiles, tools_config

ALL = {"terminal", "file", "time"}


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({}, ALL),
        ({"platform_toolsets": {"api_server": ["hermes-api-server"]}}, ALL),
        ({"platform_toolsets": {"api_server": ["file"], "cli": ["terminal"]}}, {"file"}),
        ({"platform_toolsets": {"api_server": "file, clock"}}, {"file", "time"}),
        ({"platform_toolsets": {"api_server": []}}, set()),
        ({"platform_toolsets": {"api_server": ["web", "memory", "nonsense"]}}, set()),
        ({"platform_toolsets": {"api_server": ["read_file"]}}, {"read_file"}),
        ({"agent": {"disabled_toolsets": ["terminal", "web"]}}, {"file", "time"}),
        ({"agent": {"disabled_toolsets": ["default"]}}, set()),
        (
            {"agent": {"disabled_toolsets": ["write_file", "patch", "time"]}},
            {"terminal", "read_file", "search_files", "read_result"},
        ),
    ],
)
def test_a_surface_offers_what_is_chosen_less_what_is_disabled(
    settings: dict[str, Any], chosen: set[str]
) -> None:
    assert tools_config._get_platform_tools(settings, "api_server") == chosen


def test_every_configurable_toolset_exists_and_together_they_are_the_default() -> None:
    names = [name for name, _, _ in tools_config._get_effective_configurable_toolsets()]

    members = {tool for name in names for tool in toolsets.resolve_toolset(name)}
    assert members == set(toolsets.resolve_toolset("default"))
    assert all(tools_config._toolset_has_keys(name) for name in names)
    assert not tools_config._toolset_has_keys("nonsense")


def test_a_toolset_that_does_not_exist_is_named_with_the_nearest(home: Path) -> None:
    (home / "config.yaml").write_text(
        "platform_toolsets: {api_server: [termnal, web]}\nagent: {disabled_toolsets: [memory]}\n"
    )

    (warning,) = config.load_settings().warnings

    assert "platform_toolsets.api_server" in warning
    assert "terminal" in warning


def test_the_active_profile_is_the_folder_under_profiles(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert profiles.get_active_profile_name() == "default"

    monkeypatch.setenv("HERMES_HOME", str(home / "profiles" / "work"))

    assert profiles.get_active_profile_name() == "work"
