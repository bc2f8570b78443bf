"""The named providers, as data.

Keys and addresses of the operator are laid over these by ``registry``; nothing is looked up here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from hermes.wire.quirks import Quirks

Protocol: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic"]
"""What an endpoint speaks."""

API_MODES: Mapping[str, Protocol] = MappingProxyType(
    {
        "chat_completions": "openai_chat",
        "codex_responses": "openai_responses",
        "anthropic_messages": "anthropic",
        "openai_chat": "openai_chat",
        "openai_responses": "openai_responses",
        "responses": "openai_responses",
        "anthropic": "anthropic",
    }
)
"""The names of protocols in settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A provider that can be named in the settings.

    ``key_variables`` are the environment variables that may hold its key, the first one the
    usual one. ``model`` is used where none is set; "" means that the endpoint's own first
    model is asked for. ``aliases`` are other names people write.
    """

    name: str
    title: str
    base_url: str = ""
    protocol: Protocol = "openai_chat"
    key_variables: tuple[str, ...] = ()
    model: str = ""
    needs_key: bool = True
    local: bool = False
    quirks: Quirks = field(default_factory=Quirks)
    aliases: tuple[str, ...] = ()


_ALL = (
    Profile(
        name="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        model="gpt-5.4-mini",
        quirks=Quirks(max_tokens_key="max_completion_tokens"),
    ),
    Profile(
        name="anthropic",
        title="Anthropic",
        base_url="https://api.anthropic.com/v1",
        protocol="anthropic",
        key_variables=("ANTHROPIC_API_KEY",),
        model="claude-sonnet-4-6",
        aliases=("claude",),
    ),
    Profile(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        model="openrouter/auto",
        quirks=Quirks(effort_as_object=True, reasoning_field="reasoning"),
    ),
    Profile(
        name="gemini",
        title="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        model="gemini-flash-latest",
        aliases=("google",),
    ),
    Profile(
        name="groq",
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_variables=("GROQ_API_KEY",),
        model="openai/gpt-oss-120b",
        quirks=Quirks(max_tokens_key="max_completion_tokens"),
    ),
    Profile(
        name="mistral",
        title="Mistral",
        base_url="https://api.mistral.ai/v1",
        key_variables=("MISTRAL_API_KEY",),
        model="mistral-medium-latest",
        quirks=Quirks(
            required_choice="any",
            send_stream_options=False,
            dropped=frozenset({"seed"}),
            call_id_length=9,
        ),
    ),
    Profile(
        name="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        key_variables=("DEEPSEEK_API_KEY",),
        model="deepseek-chat",
        quirks=Quirks(reasoning_field="reasoning_content"),
    ),
    Profile(
        name="xai",
        title="xAI",
        base_url="https://api.x.ai/v1",
        key_variables=("XAI_API_KEY",),
        model="grok-4",
        aliases=("grok",),
    ),
    Profile(
        name="ollama",
        title="Ollama",
        base_url="http://127.0.0.1:11434/v1",
        key_variables=("OLLAMA_API_KEY",),
        needs_key=False,
        local=True,
    ),
    Profile(
        name="lmstudio",
        title="LM Studio",
        base_url="http://127.0.0.1:1234/v1",
        key_variables=("LMSTUDIO_API_KEY",),
        needs_key=False,
        local=True,
        aliases=("lm-studio",),
    ),
    Profile(
        name="llama-server",
        title="llama.cpp server",
        base_url="http://127.0.0.1:8080/v1",
        key_variables=("LLAMA_API_KEY",),
        needs_key=False,
        local=True,
        aliases=("llamacpp", "llama.cpp", "llama-cpp"),
    ),
    Profile(
        name="vllm",
        title="vLLM",
        base_url="http://127.0.0.1:8000/v1",
        key_variables=("VLLM_API_KEY",),
        needs_key=False,
        local=True,
    ),
    Profile(
        name="custom",
        title="Custom endpoint",
        # Not OPENAI_API_KEY: that key must never reach an address of somebody else.
        key_variables=("CUSTOM_API_KEY",),
        needs_key=False,
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})
"""Every named provider by its name."""
