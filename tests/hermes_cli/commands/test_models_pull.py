"""``hermes models pull``: says what it fetches first, then how far it is, then where it is."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from hermes.errors import LocalModelError
from hermes.hermes_cli.commands import models_pull
from hermes.providers.local_catalogue import CATALOGUE, Weights
from providers.local.local_support import CONTENT, make_weights


class Server:
    """A file server in a thread; ``stall`` makes it stop in the middle of the file."""

    def __init__(self) -> None:
        self.stall: Callable[[], None] | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: object) -> None:
                pass

            def do_GET(self) -> None:
                start = int(self.headers.get("Range", "bytes=0-")[6:-1])
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(CONTENT) - start))
                end = len(CONTENT)
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
                self.end_headers()
                if outer.stall and not start:
                    self.wfile.write(CONTENT[:100_000])
                    self.wfile.flush()
                    outer.stall()
                    self.connection.recv(1)
                else:
                    self.wfile.write(CONTENT[start:])

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/model.gguf"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def weights(server: Server, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """The default model, replaced by a small one behind the server."""
    made = make_weights(name=models_pull.DEFAULT_MODEL, urls=(server.url,))
    monkeypatch.setitem(CATALOGUE, made.name, made)
    return made


def test_size_and_licence_come_first_then_lines_of_progress_then_the_place(
    weights: Weights, home: Path
) -> None:
    result = CliRunner().invoke(models_pull.command, [], catch_exceptions=False)

    first, *progress, last = result.output.splitlines()
    file = home / "models" / weights.file_name
    assert first == "Tiny: 0 MB, licence Apache-2.0 (Nobody)."
    assert progress
    assert all(re.fullmatch(r"\d+ of \d+ MB", line) for line in progress)
    assert last == f"local/{weights.name} is ready: {file}"
    assert file.read_bytes() == CONTENT


def test_a_second_pull_only_says_where_it_is(weights: Weights, home: Path) -> None:
    CliRunner().invoke(models_pull.command, [], catch_exceptions=False)

    result = CliRunner().invoke(models_pull.command, [weights.name], catch_exceptions=False)

    place = home / "models" / weights.file_name
    assert result.output == f"local/{weights.name} is ready: {place}\n"


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    result = CliRunner().invoke(models_pull.command, ["gpt-9"])

    assert result.exit_code == 2
    assert "qwen2.5-coder-1.5b" in result.output


def test_a_failed_pull_is_an_error_of_ours(server: Server, weights: Weights) -> None:
    server.close()

    result = CliRunner().invoke(models_pull.command, [])

    assert isinstance(result.exception, LocalModelError)
    assert result.exception.code == "weights_unreachable"


def test_ctrl_c_keeps_what_has_arrived_and_says_so(
    server: Server, weights: Weights, home: Path
) -> None:
    partial = home / "models" / f"{weights.file_name}.partial"

    def interrupt() -> None:
        while not partial.exists() or not partial.stat().st_size:
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    server.stall = interrupt
    stopped = CliRunner().invoke(models_pull.command, [])
    server.stall = None
    resumed = CliRunner().invoke(models_pull.command, [], catch_exceptions=False)

    assert stopped.exit_code == 1
    assert "What has arrived is kept" in stopped.output
    assert resumed.output.splitlines()[-1].endswith(weights.file_name)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals there")
def test_on_a_terminal_the_progress_is_a_bar(
    weights: Weights, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, other = os.openpty()
    with os.fdopen(other, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setenv("TERM", "xterm")
        models_pull.command.main([], standalone_mode=False)
        terminal.flush()
        shown = b""
        while b"is ready" not in shown:
            shown += os.read(main, 65536)
    os.close(main)

    assert "━" in shown.decode()
    assert (home / "models" / weights.file_name).exists()
