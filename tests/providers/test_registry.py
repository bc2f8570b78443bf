"""Endpoints from names, addresses and keys as people write them."""

from dataclasses import replace

import pytest

from hermes.errors import ConfigError
from hermes.providers.registry import PROFILES, endpoint, find_profile, protocol_of
from hermes.providers.urls import is_local, normalise_base_url, operation_url

NAMES = (
    "openai", "anthropic", "openrouter", "gemini", "groq", "mistral", "deepseek", "xai",
    "ollama", "lmstudio", "llama-server", "vllm", "custom",
)  # fmt: skip


def test_every_named_provider_makes_an_endpoint() -> None:
    assert tuple(PROFILES) == NAMES
    for name in NAMES:
        address = "http://127.0.0.1:1/v1" if name == "custom" else ""
        made = endpoint(name, api_key="k" * 20, base_url=address)
        assert made.name == name
        assert made.base_url == normalise_base_url(made.base_url)
        assert made.local == is_local(made.base_url)


def test_hosted_providers_have_a_model_and_a_key_variable() -> None:
    for profile in PROFILES.values():
        if profile.needs_key:
            assert profile.model
            assert profile.key_variables
            assert profile.base_url.startswith("https://")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("opneai", "openai"), ("antropic", "anthropic"), ("open-router", "openrouter"),
     ("llamaserver", "llama-server"), ("lm_studi", "lmstudio")],
)  # fmt: skip
def test_an_unknown_provider_names_the_nearest_one(wrong: str, right: str) -> None:
    with pytest.raises(ConfigError, match=right) as caught:
        find_profile(wrong)
    assert caught.value.code == "unknown_provider"


@pytest.mark.parametrize(
    ("written", "name"),
    [("OpenAI", "openai"), (" claude ", "anthropic"), ("google", "gemini"), ("grok", "xai"),
     ("llama_server", "llama-server"), ("llama.cpp", "llama-server"), ("lm-studio", "lmstudio")],
)  # fmt: skip
def test_other_spellings_are_understood(written: str, name: str) -> None:
    assert find_profile(written).name == name


@pytest.mark.parametrize(
    ("mode", "protocol"),
    [("chat_completions", "openai_chat"), ("codex_responses", "openai_responses"),
     ("anthropic_messages", "anthropic")],
)  # fmt: skip
def test_the_api_modes_of_settings_name_protocols(mode: str, protocol: str) -> None:
    assert protocol_of(mode) == protocol
    assert endpoint("custom", base_url="http://h/v1", api_mode=mode).protocol == protocol


def test_an_unknown_api_mode_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="chat_completions"):
        protocol_of("chat_completion")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://localhost:8080", "http://localhost:8080/v1"),
        ("http://localhost:8080/", "http://localhost:8080/v1"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1"),
        ("http://localhost:8080/v1/v1", "http://localhost:8080/v1"),
        ("http://localhost:8080//v1", "http://localhost:8080/v1"),
        ("localhost:8080", "http://localhost:8080/v1"),
        ("192.168.1.5:1234/v1", "http://192.168.1.5:1234/v1"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1"),
        ("https://api.example.com/v1/chat/completions/", "https://api.example.com/v1"),
        ("https://api.example.com/v1/responses", "https://api.example.com/v1"),
        ("https://api.example.com/v1/models", "https://api.example.com/v1"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("https://g.example/v1beta/openai/", "https://g.example/v1beta/openai"),
        ("HTTPS://api.example.com/v1", "https://api.example.com/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
        (" https://api.example.com/v1 ", "https://api.example.com/v1"),
        ("https://a.example/openai?api-version=1", "https://a.example/openai?api-version=1"),
    ],
)
def test_addresses_are_put_right(written: str, meant: str) -> None:
    assert normalise_base_url(written) == meant
    assert normalise_base_url(meant) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
        ("https://api.example.com/anthropic", "https://api.example.com/anthropic/v1"),
    ],
)
def test_the_anthropic_protocol_has_its_version_always(written: str, meant: str) -> None:
    assert normalise_base_url(written, anthropic=True) == meant


@pytest.mark.parametrize(
    "bad",
    ["", "ftp://host/v1", "http://", "http://host:99999/v1", "http://ho st/v1", "https://[::1/v1",
     "http://host/v1\r\nX: y", "https://user:secret@host/v1", "http://host:0/v1"],
)  # fmt: skip
def test_an_unusable_address_is_refused_and_not_repeated(bad: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalise_base_url(bad)
    assert caught.value.code == "bad_base_url"
    assert "secret" not in caught.value.message


def test_a_query_stays_behind_the_operation() -> None:
    base = "https://a.example/openai?api-version=1"
    assert operation_url(base, "/models") == "https://a.example/openai/models?api-version=1"


@pytest.mark.parametrize(
    ("url", "local"),
    [("http://127.0.0.1:1/v1", True), ("http://10.0.0.7/v1", True), ("http://[::1]/v1", True),
     ("http://box.local/v1", True), ("http://localhost/v1", True), ("http://8.8.8.8/v1", False),
     ("https://api.openai.com/v1", False), ("http://localhost.example.com/v1", False)],
)  # fmt: skip
def test_local_addresses_are_known(url: str, local: bool) -> None:
    assert is_local(url) is local


def test_a_missing_key_says_which_variable_to_set() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        endpoint("openai")
    assert caught.value.code == "missing_key"


def test_a_local_server_or_an_address_of_ones_own_needs_no_key() -> None:
    assert endpoint("ollama").api_key == ""
    assert endpoint("openai", base_url="http://127.0.0.1:1").local


def test_custom_without_an_address_says_so() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        endpoint("custom")


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nX: y", "sk-\u2026abc", "sk-\x00"])
def test_a_key_that_cannot_be_one_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint("openai", api_key=key)
    assert caught.value.code == "bad_api_key"
    assert "sk-" not in caught.value.message


def test_neither_key_nor_headers_are_shown() -> None:
    made = endpoint("openai", api_key=" sk-very-secret-key ")
    made = replace(made, headers={"X-Token": "also-secret"})
    assert made.api_key == "sk-very-secret-key"
    assert "secret" not in repr(made)
    assert hash(made) == hash(replace(made))


def test_reasoning_is_bound_to_protocol_and_address() -> None:
    made = endpoint("anthropic", api_key="k" * 20)
    assert made.origin == "anthropic:api.anthropic.com"
    other = endpoint("anthropic", api_key="k" * 20, base_url="http://127.0.0.1:9")
    assert other.origin != made.origin
    assert replace(made, model="x").origin == made.origin


def test_a_key_of_openai_never_reaches_a_custom_address() -> None:
    assert "OPENAI_API_KEY" not in PROFILES["custom"].key_variables
