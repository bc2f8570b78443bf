"""Measure the server: one Markdown table of ours, of the provider itself, and of the public peer.

``python bench/run.py [--kit FOLDER] [--quick] [--out FILE]``. The kit has the scripted provider and
the load generator; HERMES_BENCH_KIT names it, else ``shared/bench`` beside the checkout is used.
The figures of one line are taken one right after the other, so that a busy machine slows them
alike; the peer's are quoted (see ``peer``), not measured.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peer
from process import ROOT, Target, hermes_server, scripted_provider
from table import Row, render

STREAMS = (1, 10, 50, 100)
CLIENTS = (1, 10, 50)
ROUNDS = {1: 20, 10: 5, 50: 3, 100: 3}
LONG_CHUNKS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The kit's load generator, pointed at targets."""

    kit: Path

    def run(self, target: Target, mode: str, *options: str) -> dict[str, Any]:
        """Return the generator's figures; exits when a request failed."""
        command = [sys.executable, str(self.kit / "load.py"), "--mode", mode, "--api", "chat"]
        command += ["--base-url", target.base_url, "--key", target.key, "--pid", str(target.pid)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the load generator failed:\n{done.stderr[-2000:]}")
        figures = json.loads(done.stdout)
        if figures["errors"]:
            sys.exit(f"requests failed: {figures['errors']} {figures.get('error_samples', '')}")
        return figures


def start_rows(home: Path, provider: Target, starts: int) -> list[Row]:
    """Start the server some times: cold start, first turns, idle memory (medians)."""
    cold, first, second, idle = [], [], [], []
    for number in range(starts):
        with hermes_server(home / f"start-{number}", provider) as server:
            cold.append(server.started_in)
            time.sleep(2)
            idle.append(server.memory())
            body = {"model": "x", "messages": [{"role": "user", "content": f"say hi {number}"}]}
            first.append(server.turn(body) * 1e3)
            second.append(server.turn(body) * 1e3)
    late = statistics.median(a - b for a, b in zip(first, second, strict=True))
    middle = statistics.median
    return [
        Row(name="start to /health", unit="s", ours=middle(cold), peer=peer.COLD_START, goal=0.6),
        Row(name="first turn", unit="ms", ours=middle(first), peer=peer.FIRST_TURN),
        Row(name="second turn", unit="ms", ours=middle(second), peer=peer.SECOND_TURN),
        Row(name="first turn less the second", unit="ms", ours=late, goal=20),
        Row(name="memory, idle", unit="MB", ours=middle(idle), peer=peer.MEMORY_IDLE, goal=90),
    ]


def stream_rows(load: Load, server: Target, provider: Target, quick: bool) -> list[Row]:
    """Streams of 20 chunks 20 ms apart, 1 to 100 at a time."""
    rows: list[Row] = []
    for streams in STREAMS:
        options = ("-c", str(streams), "-r", "2" if quick else str(ROUNDS[streams]))
        direct = load.run(provider, "latency", *options)
        ours = load.run(server, "latency", *options)
        rows += _stream_rows(streams, ours, direct)
    rows.append(
        Row(
            name="memory after 100 streams",
            unit="MB",
            ours=server.memory(),
            peer=peer.MEMORY_AFTER_100_STREAMS,
            goal=120,
        )
    )
    return rows


def _stream_rows(streams: int, ours: dict[str, Any], direct: dict[str, Any]) -> Iterable[Row]:
    count = f"{streams} streams" if streams > 1 else "1 stream"

    def row(name: str, unit: str, path: tuple[str, ...], quoted: float, **more: Any) -> Row:
        a, b = (_at(figures, path) for figures in (ours, direct))
        return Row(name=f"{name}, {count}", unit=unit, ours=a, direct=b, peer=quoted, **more)

    p50_goal: dict[str, Any] = {"goal": 5.0} if streams == 1 else {}
    p95_goal = {"goal": 60.0, "goal_over_direct": True} if streams == 100 else {}
    first, relay = "ttft_overhead_ms", "relay_ms"
    yield row("first token p50", "ms", (first, "p50"), peer.TTFT_P50[streams], **p50_goal)
    yield row("first token p95", "ms", (first, "p95"), peer.TTFT_P95[streams], **p95_goal)
    yield row("relay p50", "ms", (relay, "p50"), peer.RELAY_P50[streams])
    yield row("relay p95", "ms", (relay, "p95"), peer.RELAY_P95[streams])
    rate = peer.STREAMS_PER_SECOND[streams]
    yield row("streams", "1/s", ("streams_per_s",), rate, better="more")
    used = ("server", "cpu_ms_per_request")
    yield row("CPU of a streamed turn", "ms", used, peer.CPU_PER_STREAM[streams])


def _at(figures: dict[str, Any], path: tuple[str, ...]) -> float:
    found: Any = figures
    for key in path:
        found = found[key]
    return float(found)


def turn_rows(load: Load, server: Target, provider: Target, seconds: float) -> list[Row]:
    """Turns without streaming, as fast as they go."""
    rows: list[Row] = []
    for clients in CLIENTS:
        count = f"{clients} clients" if clients > 1 else "1 client"
        options = ("-c", str(clients), "--duration", str(seconds))
        direct = load.run(provider, "rps", *options)
        ours = load.run(server, "rps", *options)
        rows += [
            Row(
                name=f"turns, {count}",
                unit="1/s",
                ours=ours["requests_per_s"],
                direct=direct["requests_per_s"],
                peer=peer.TURNS_PER_SECOND[clients],
                better="more",
                goal=300 if clients == 10 else None,
            ),
            Row(
                name=f"CPU of a turn, {count}",
                unit="ms",
                ours=ours["server"]["cpu_ms_per_request"],
                direct=direct["server"]["cpu_ms_per_request"],
                peer=peer.CPU_PER_TURN[clients],
            ),
        ]
    return rows


def long_row(load: Load, server: Target, provider: Target) -> Row:
    """One stream of 20,000 chunks without delay; the median of three."""

    def chunks_per_second(target: Target) -> float:
        options = ("-c", "1", "-r", "1", "--chunks", str(LONG_CHUNKS))
        runs = [load.run(target, "long", *options) for _ in range(3)]
        return statistics.median(float(run["provider_chunks_per_s"]) for run in runs)

    return Row(
        name=f"one stream of {LONG_CHUNKS:,} chunks",
        unit="chunks/s",
        ours=chunks_per_second(server),
        direct=chunks_per_second(provider),
        peer=peer.LONG_CHUNKS_PER_SECOND,
        better="more",
        goal=60_000,
    )


def measure(kit: Path, quick: bool) -> list[Row]:
    """Take every figure; a line on standard error tells how far it is."""
    load = Load(kit=kit)

    def say(what: str) -> None:
        print(f"bench: {what}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder, scripted_provider(kit) as provider:
        say("starts")
        rows = start_rows(Path(folder), provider, 1 if quick else 5)
        with hermes_server(Path(folder) / "load", provider) as server:
            say("streams")
            rows += stream_rows(load, server, provider, quick)
            say("one long stream")
            rows.append(long_row(load, server, provider))
            say("turns")
            rows += turn_rows(load, server, provider, 2 if quick else 8)
    return rows


def main() -> int:
    """Print the table; return 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description="Measure the server against a scripted provider.")
    beside = ROOT.parent / "shared" / "bench"
    kit = Path(os.environ.get("HERMES_BENCH_KIT") or beside)
    parser.add_argument("--kit", type=Path, default=kit, help="folder of the measuring tools")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rougher figures")
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    if not (options.kit / "load.py").is_file():
        parser.error(
            f"{options.kit} has no load.py: name the folder with --kit or HERMES_BENCH_KIT"
        )
    rows = measure(options.kit, options.quick)
    machine = (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}"
    )
    text = f"{render(rows)}\n\n{machine}; the peer is {peer.SOURCE}.\n"
    print(text, end="")
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    return 1 if any(row.met is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
