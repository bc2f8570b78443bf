import pytest

from hermes.errors import ToolboxError
from hermes.tools.registry import MAKERS, build_toolbox
from hermes.toolsets import (
    ABSENT,
    ALIASES,
    TOOLSETS,
    absent_toolsets,
    resolve_toolset,
    resolve_toolsets,
)


def test_every_named_tool_can_be_made_and_every_tool_is_named() -> None:
    named = {tool for members in TOOLSETS.values() for tool in members}

    assert named == set(MAKERS)
    assert [spec.name for spec in build_toolbox().specs] == list(TOOLSETS["default"])
    assert all(MAKERS[name] for name in named)


def test_every_alias_leads_to_a_set_and_hides_none() -> None:
    assert set(ALIASES.values()) <= set(TOOLSETS)
    assert not set(ALIASES) & set(TOOLSETS)
    assert not ABSENT & (set(TOOLSETS) | set(ALIASES))


@pytest.mark.parametrize("name", ["hermes-api-server", "hermes-cli", "default", "all", " default "])
def test_names_of_the_public_settings_give_what_is_here(name: str) -> None:
    assert resolve_toolset(name) == list(TOOLSETS["default"])


@pytest.mark.parametrize("name", ["web", "browser", "memory", "cronjob"])
def test_sets_that_are_not_here_are_empty_and_can_be_named(name: str) -> None:
    assert resolve_toolset(name) == []
    assert absent_toolsets(["file", name, name]) == [name]


def test_a_tool_stands_for_itself() -> None:
    assert resolve_toolset("patch") == ["patch"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("fle", "file"), ("defualt", "default"), ("read_files", "read_file"), ("", "terminal")],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(ToolboxError) as caught:
        resolve_toolset(name)

    assert caught.value.code == "unknown_toolset"
    assert near in caught.value.message


def test_sets_together_name_each_tool_once_without_the_disabled() -> None:
    assert resolve_toolsets(["terminal", "file"], disabled=["patch", "web"]) == [
        "terminal",
        "read_result",
        "read_file",
        "write_file",
        "search_files",
    ]


def test_a_resolved_list_is_the_callers_own() -> None:
    resolve_toolset("default").clear()

    assert resolve_toolset("default")
