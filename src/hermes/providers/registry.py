"""Endpoints: where a model answers, how it is spoken to and what is sent along.

Settings are not read here and nothing is connected to.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hermes.errors import ConfigError
from hermes.messages import ModelOptions
from hermes.providers.limits import Limits
from hermes.providers.profiles import API_MODES, PROFILES, Profile, Protocol
from hermes.providers.urls import is_local, location, normalise_base_url
from hermes.redaction import register_secret
from hermes.wire.quirks import Quirks

__all__ = [
    "API_MODES",
    "PROFILES",
    "Endpoint",
    "Limits",
    "Profile",
    "Protocol",
    "endpoint",
    "find_profile",
    "protocol_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model at one address.

    ``base_url`` is normalised. ``model`` may be empty: the endpoint's own first model.
    ``context_length`` is in tokens, 0 for unknown. ``headers`` go with every request and win
    over ours. ``options`` hold for every request unless it says otherwise.
    Hashable; neither the key nor the headers are in its ``repr``.
    """

    name: str
    protocol: Protocol
    base_url: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    context_length: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, hash=False)
    quirks: Quirks = field(default_factory=Quirks)
    limits: Limits = field(default_factory=Limits)
    options: ModelOptions = field(default_factory=ModelOptions, hash=False)
    local: bool = False

    def __post_init__(self) -> None:
        if not self.quirks.origin:
            origin = f"{self.protocol}:{location(self.base_url)}"
            object.__setattr__(self, "quirks", replace(self.quirks, origin=origin))

    @property
    def origin(self) -> str:
        """The name under which reasoning of this endpoint is kept; never sent to another."""
        return self.quirks.origin


def endpoint(
    provider: str, *, model: str = "", base_url: str = "", api_key: str = "", api_mode: str = ""
) -> Endpoint:
    """Return the endpoint of a named provider, with what is given in place of its own values.

    Use ``dataclasses.replace`` for the rest.

    Raises:
        ConfigError: ``unknown_provider``, ``bad_base_url``, ``bad_api_key``, ``missing_key`` or
            ``unknown_api_mode``; the message says what to do.
    """
    profile = find_profile(provider)
    protocol = protocol_of(api_mode) if api_mode else profile.protocol
    if not (base_url or profile.base_url):
        raise ConfigError(
            f"Provider {profile.name} needs an address: set model.base_url.", code="bad_base_url"
        )
    key = _clean_key(api_key)
    if profile.needs_key and not key and not base_url:
        variable = profile.key_variables[0]
        raise ConfigError(
            f"Provider {profile.name} needs a key: set {variable} or model.api_key.",
            code="missing_key",
        )
    register_secret(key)
    address = normalise_base_url(base_url or profile.base_url, anthropic=protocol == "anthropic")
    return Endpoint(
        name=profile.name,
        protocol=protocol,
        base_url=address,
        model=model.strip() or profile.model,
        api_key=key,
        quirks=profile.quirks,
        local=profile.local if not base_url else is_local(address),
    )


def find_profile(name: str) -> Profile:
    """Return the profile of a provider's name or alias, in any case.

    Raises:
        ConfigError: there is none; the message names the nearest one.
    """
    wanted = name.strip().lower()
    profile = PROFILES.get(wanted) or PROFILES.get(wanted.replace("_", "-"))
    if profile is not None:
        return profile
    aliases = {alias: entry for entry in PROFILES.values() for alias in entry.aliases}
    if wanted in aliases:
        return aliases[wanted]
    near = difflib.get_close_matches(wanted, [*PROFILES, *aliases], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(PROFILES)}."
    raise ConfigError(f"There is no provider {name!r}; {hint}", code="unknown_provider")


def protocol_of(api_mode: str) -> Protocol:
    """Return the protocol of an ``api_mode`` in the settings.

    Raises:
        ConfigError: the mode is not known; the message names the nearest one.
    """
    protocol = API_MODES.get(api_mode.strip().lower())
    if protocol is None:
        near = difflib.get_close_matches(api_mode.lower(), API_MODES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(API_MODES)}."
        raise ConfigError(f"There is no api_mode {api_mode!r}; {hint}", code="unknown_api_mode")
    return protocol


def _clean_key(key: str) -> str:
    key = key.strip()
    if re.search(r"[\x00-\x20\x7f]|[^\x00-\x7f]", key):
        raise ConfigError(
            "The provider's key holds a space, a line break or a character that no key has; "
            "copy it again.",
            code="bad_api_key",
        )
    return key
