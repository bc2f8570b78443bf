"""Programs that a measurement starts, watches and ends: the scripted provider and the server.

What they are asked is the caller's; whatever is started here is ended here, by its process id.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 60.0
"""Seconds that a program may take to answer for the first time, or to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A running server: its base URL (ends in ``/v1``), its key and its process."""

    base_url: str
    key: str
    pid: int
    started_in: float
    """Seconds from the start of the process to the first answer of ``/health``."""

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) / 1024

    def cpu_seconds(self) -> float:
        """CPU time used so far, of all threads; in nanosecond steps where the kernel counts so."""
        total = 0.0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
        if total:
            return total
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def turn(self, body: dict[str, Any]) -> float:
        """Post one chat completion; return the seconds it took."""
        request = urllib.request.Request(
            f"{self.base_url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        started = time.perf_counter()
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            answer.read()
        return time.perf_counter() - started


@contextmanager
def scripted_provider(kit: Path) -> Iterator[Target]:
    """Run the kit's scripted provider on a free port."""
    command = [sys.executable, str(kit / "fake_provider.py"), "--port", "0"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            yield Target(
                base_url=f"{ready['listening']}/v1",
                key="",
                pid=process.pid,
                started_in=time.perf_counter() - started,
            )
        finally:
            _end(process)


@contextmanager
def hermes_server(home: Path, provider: Target) -> Iterator[Target]:
    """Run ``hermes serve`` in the empty folder ``home``, with ``provider`` as its model."""
    home.mkdir(parents=True)
    (home / "config.yaml").write_text(
        "model:\n  provider: custom\n  default: fake-1\n"
        f"  base_url: {provider.base_url}\n  api_key: scripted\n  context_length: 1000000\n"
        "gateway:\n  api_server:\n    max_concurrent_runs: 0\n"
    )
    key, port = secrets.token_hex(24), _free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT / "src"),
        "HERMES_HOME": str(home),
        "API_SERVER_KEY": key,
        "API_SERVER_PORT": str(port),
    }
    command = [sys.executable, "-m", "hermes", "serve"]
    with (home / "server.log").open("wb") as log:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        with process:
            try:
                _wait_for(f"http://127.0.0.1:{port}/health", process, home / "server.log")
                yield Target(
                    base_url=f"http://127.0.0.1:{port}/v1",
                    key=key,
                    pid=process.pid,
                    started_in=time.perf_counter() - started,
                )
            finally:
                _end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + LIMIT
    while time.monotonic() < give_up:
        if process.poll() is not None:
            sys.exit(f"the server ended with {process.returncode}:\n{log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.005)
    sys.exit(f"{url} did not answer within {LIMIT:g} s")


def _end(process: subprocess.Popen[Any]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
