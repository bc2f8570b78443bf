"""Model servers that already run on this computer: found, and judged by what they offer.

Only loopback is asked, briefly and all at once. Whether to use what was found is the caller's
choice; these servers take native tool calls.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp

from hermes.errors import ProviderProtocolError
from hermes.wire.jsonvalue import as_list, as_object, as_text, parse

_ANSWER_SECONDS = 0.4
_MOST_BYTES = 1_000_000
_NOT_FOR_CHAT = ("embed", "rerank", "whisper", "bge-", "minilm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Where a kind of server listens unless told otherwise."""

    label: str
    base_url: str
    advice: str

    @property
    def place(self) -> str:
        """The address as people write it, e.g. ``127.0.0.1:11434``."""
        return self.base_url.removeprefix("http://").removesuffix("/v1")


CANDIDATES = (
    Candidate(
        label="Ollama",
        base_url="http://127.0.0.1:11434/v1",
        advice="run `ollama pull qwen3:4b`",
    ),
    Candidate(
        label="LM Studio",
        base_url="http://127.0.0.1:1234/v1",
        advice="download one in its window",
    ),
    Candidate(
        label="llama-server or llamafile",
        base_url="http://127.0.0.1:8080/v1",
        advice="start it with a model",
    ),
)
"""In order of preference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A server that answered; ``models`` are the ids that can chat, in its order."""

    candidate: Candidate
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What was looked at and what answered, in order of preference."""

    looked_at: tuple[Candidate, ...]
    servers: tuple[LocalServer, ...]

    @property
    def usable(self) -> LocalServer | None:
        """The server to use: the first that has a model."""
        return next((server for server in self.servers if server.models), None)

    def summary(self) -> str:
        """One sentence for people: what is used, or what stands in the way."""
        server = self.usable
        if server is not None:
            return f"Using {server.models[0]} from {server.candidate.label} on this computer."
        if self.servers:
            candidate = self.servers[0].candidate
            return f"{candidate.label} is running but has no model: {candidate.advice}."
        if not self.looked_at:
            return "No local server was looked for (local.detect_servers is off)."
        places = [candidate.place for candidate in self.looked_at]
        shorter = [places[0], *(f":{place.rpartition(':')[2]}" for place in places[1:])]
        return f"Looked at: {', '.join(shorter)}, none answered."


async def detect(candidates: Sequence[Candidate] = CANDIDATES) -> Detection:
    """Ask all candidates at once for their models; takes at most 0.4 seconds, never raises.

    A candidate counts only if its answer is JSON with a list of ids, since other programs listen
    on these ports too.
    """
    timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        found = await asyncio.gather(*(_ask(session, candidate) for candidate in candidates))
    servers = tuple(server for server in found if server is not None)
    return Detection(looked_at=tuple(candidates), servers=servers)


def no_model_text(detection: Detection) -> str:
    """Return what a user reads who has no model at all (error code ``no_model``, HTTP 503)."""
    return (
        "No model is set up. Choose one:\n"
        "  1. Add a provider key:   hermes config set OPENAI_API_KEY ..."
        "    (or ANTHROPIC_API_KEY, OPENROUTER_API_KEY)\n"
        "  2. Use a local server:   start Ollama, LM Studio or llama-server; it is found by"
        " itself\n"
        "  3. Try the demo model:   hermes models pull"
        "    (0.5 GB download, 1.2 GB of memory; needs hermes[local])\n"
        f"{detection.summary()}"
    )


async def _ask(session: aiohttp.ClientSession, candidate: Candidate) -> LocalServer | None:
    try:
        url = f"{candidate.base_url}/models"
        async with session.get(url, allow_redirects=False) as response:
            if response.status != 200:
                return None
            value = parse(await _read(response))
    except (aiohttp.ClientError, OSError, ProviderProtocolError):
        return None
    answer = as_object(value)
    is_list = isinstance(answer.get("data"), list)
    if not is_list and answer.get("object") != "list":  # Ollama without a model: null for a list
        return None
    ids = [as_text(as_object(entry).get("id")) for entry in as_list(answer.get("data"))]
    if not all(ids):
        return None
    models = tuple(name for name in ids if not _is_no_chat_model(name))
    return LocalServer(candidate=candidate, models=models)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body; one beyond the limit is cut, so it is no JSON and hence no hit."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _MOST_BYTES:
            break
    return bytes(body[:_MOST_BYTES])


def _is_no_chat_model(name: str) -> bool:
    return any(word in name.lower() for word in _NOT_FOR_CHAT)
