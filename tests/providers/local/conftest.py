"""A model that is scripted, in a process of its own."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.providers.local_catalogue import CATALOGUE, Weights
from hermes.providers.local_child import ChildPolicy
from providers.local import fake_worker_path
from providers.local.local_support import make_weights


@dataclass(frozen=True)
class FakeModel:
    """Weights that script the fake process, and what it noted."""

    weights: Weights
    file: Path

    @property
    def notes(self) -> list[dict[str, Any]]:
        path = self.file.with_suffix(".notes")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [entry["request"] for entry in self.notes if "request" in entry]

    @property
    def pids(self) -> list[int]:
        return [entry["started"] for entry in self.notes if "started" in entry]


@pytest.fixture
def fake_model(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeModel]:
    """Make the catalogue's model ``tiny`` one that gives these answers."""

    def make(*answers: dict[str, Any], start: str = "ok") -> FakeModel:
        script = json.dumps({"start": start, "answers": answers}).encode()
        weights = make_weights(script)
        monkeypatch.setitem(CATALOGUE, weights.name, weights)
        file = home / "models" / weights.file_name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(script)
        return FakeModel(weights, file)

    return make


@pytest.fixture
def policy() -> ChildPolicy:
    return ChildPolicy(
        command=(sys.executable, "-P", str(fake_worker_path)), ready=20, backoff=0.01
    )
