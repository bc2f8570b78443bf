"""The configured endpoints, asked what they offer: what ``models`` and ``doctor`` tell.

Which endpoint answers a turn is ``gateway.run``'s; nothing is chosen or kept here.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from hermes.errors import HermesError
from hermes.gateway import run
from hermes.hermes_cli.config import LoadedSettings
from hermes.providers.catalogue import list_models
from hermes.providers.http import Transport
from hermes.providers.local_detect import Detection, detect
from hermes.providers.registry import PROFILES, Endpoint, endpoint
from hermes.redaction import redact

DEFAULT = "default"

AUTO = {"provider": run.AUTO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """An endpoint and what it said.

    ``role``: ``default``, ``fallback``, or "" for one that is only named or has a key.
    ``error`` is why it cannot be used, "" when it can; ``seconds`` is how long it took.
    """

    role: str
    name: str
    base_url: str = ""
    model: str = ""
    context_length: int = 0
    models: tuple[str, ...] = ()
    error: str = ""
    seconds: float = 0.0


Configured: TypeAlias = tuple[str, Endpoint | Listing]
"""A role with an endpoint, or with the listing of one that cannot be made."""


def configured(loaded: LoadedSettings) -> list[Configured]:
    """Return each endpoint once with its role, or the listing of one that cannot be made."""
    chosen: list[Configured] = []
    addresses: set[str] = set()
    for role, entry in _all(loaded):
        if role or not entry.base_url or entry.base_url not in addresses:
            chosen.append((role, entry))
            addresses.add(entry.base_url)
    return chosen


async def survey(entries: Sequence[Configured], *, limit: float) -> list[Listing]:
    """Ask every endpoint for its models, all at once, each for ``limit`` seconds."""
    transport = Transport()
    try:
        return await asyncio.gather(
            *(_ask(transport, role, entry, limit) for role, entry in entries)
        )
    finally:
        await transport.aclose()


async def local_servers(loaded: LoadedSettings) -> Detection:
    """Look for model servers on this machine, unless the settings forbid it."""
    return await (detect() if loaded.settings.local.detect_servers else detect(()))


def _all(loaded: LoadedSettings) -> Iterator[Configured]:
    settings = loaded.settings
    try:
        keywords = run._resolve_runtime_agent_kwargs()
        if keywords != AUTO:
            made = endpoint(**keywords, model=run._resolve_gateway_model())
            yield DEFAULT, run.refine_endpoint(made)
    except HermesError as error:
        yield DEFAULT, _failed(DEFAULT, settings.model.provider, error)
    try:
        for made in run.GatewayRunner._load_fallback_model() or ():
            yield "fallback", made
    except HermesError as error:
        yield "fallback", _failed("fallback", "fallback_providers", error)
    with_key = (
        name
        for name, profile in PROFILES.items()
        if any(loaded.environment.get(variable) for variable in profile.key_variables)
    )
    for name in (*settings.providers, *with_key):
        try:
            keywords = run._resolve_runtime_agent_kwargs_for_provider(name)
            made = endpoint(**keywords)
            if name in settings.providers:
                chosen = settings.providers[name]
                made = replace(made, headers=chosen.headers, model=chosen.model or made.model)
            yield "", replace(made, name=name)
        except HermesError as error:
            if name in settings.providers:
                yield "", _failed("", name, error)


def _failed(role: str, name: str, error: HermesError) -> Listing:
    return Listing(role=role, name=name, error=redact(error.message))


async def _ask(transport: Transport, role: str, entry: Endpoint | Listing, limit: float) -> Listing:
    if isinstance(entry, Listing):
        return entry
    started = time.perf_counter()
    listing = Listing(
        role=role,
        name=entry.name,
        base_url=entry.base_url,
        model=entry.model,
        context_length=entry.context_length,
    )
    try:
        models = await list_models(transport, entry, limit=limit)
    except HermesError as error:
        text = redact(error.message)
        return replace(listing, error=text, seconds=time.perf_counter() - started)
    return replace(listing, models=tuple(models), seconds=time.perf_counter() - started)
