"""Fixtures for every test: nothing leaves this machine, nothing blocks the loop unseen."""

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from blockbuster import BlockBuster, blockbuster_ctx

from support.scripted_http import ScriptedHttp

_guarded = False


def _refuse_foreign_sockets(event: str, args: tuple[Any, ...]) -> None:
    if event != "socket.connect" or not _guarded:
        return
    address = args[1]
    if not isinstance(address, tuple):
        return  # a unix socket
    host = str(address[0])
    if host in ("localhost", "::1", "") or host.startswith(("127.", "::ffff:127.")):
        return
    raise AssertionError(f"a test tried to connect to {host!r}, beyond loopback")


sys.addaudithook(_refuse_foreign_sockets)


@pytest.fixture(autouse=True)
def _loopback_only() -> Iterator[None]:
    global _guarded  # noqa: PLW0603 - an audit hook cannot be taken out again
    _guarded = True
    yield
    _guarded = False


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """A call of ours that blocks a running event loop raises ``BlockingError``."""
    with blockbuster_ctx("hermes") as blocker:
        yield blocker


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HERMES_HOME, an empty folder of this test."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("HERMES_HOME", str(folder))
    return folder


@pytest_asyncio.fixture
async def scripted_http() -> AsyncIterator[ScriptedHttp]:
    """A provider over real HTTP on loopback that does what each test scripts."""
    async with ScriptedHttp() as server:
        yield server
