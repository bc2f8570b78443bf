"""Which model a provider answers with when none is named."""

from hermes.errors import ConfigError
from hermes.providers.registry import find_profile


def get_default_model_for_provider(provider: str) -> str | None:
    """Return the provider's default model, or None where it has none of its own."""
    try:
        return find_profile(provider).model or None
    except ConfigError:
        return None
