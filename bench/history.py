"""CPU of one turn at growing lengths of history, beside what its JSON alone costs.

``python bench/history.py [--kit FOLDER]``. A turn must read and write its history as JSON once;
whatever grows faster than that is ours. Needs the kit as ``run`` does.
"""

import argparse
import os
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import orjson
from process import ROOT, Target, hermes_server, scripted_provider
from table import number

LENGTHS = (10, 100, 1000)
WORDS = ("lorem ipsum dolor sit amet " * 8)[:200]
TURNS = 60
WARM = 40


def conversation(messages: int) -> list[dict[str, str]]:
    """Return that many messages, the last one the user's question."""
    roles = ("user", "assistant")
    talk = [{"role": roles[n % 2], "content": f"{n} {WORDS}"} for n in range(messages - 1)]
    return [*talk, {"role": "user", "content": "say done"}]


def post(target: Target, body: bytes, session: str = "") -> None:
    """Post one chat completion and read its answer."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {target.key}"}
    if session:
        headers["X-Hermes-Session-Id"] = session
    request = urllib.request.Request(f"{target.base_url}/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def cpu_of_a_turn(target: Target, body: bytes, session: str = "") -> float:
    """Return the server's CPU milliseconds for one turn, warm, the mean of many."""
    for _ in range(WARM):
        post(target, body, session)
    before = target.cpu_seconds()
    for _ in range(TURNS):
        post(target, body, session)
    return (target.cpu_seconds() - before) / TURNS * 1e3


def cost_of_json(messages: int) -> float:
    """Return the milliseconds of reading that conversation and writing it again."""
    body = orjson.dumps({"model": "x", "messages": conversation(messages)})
    started = time.process_time()
    for _ in range(TURNS):
        orjson.dumps(orjson.loads(body))
    return (time.process_time() - started) / TURNS * 1e3


def stored_session(target: Target, messages: int) -> str:
    """Hold a conversation of that many messages on the server; return its id."""
    name = f"history-{messages}"
    for turn in range(messages // 2):
        text = f"say reply {turn} {WORDS}"
        body: dict[str, Any] = {"model": "x", "messages": [{"role": "user", "content": text}]}
        post(target, orjson.dumps(body), name)
    return name


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="CPU of a turn by the length of its history.")
    kit = Path(os.environ.get("HERMES_BENCH_KIT") or ROOT.parent / "shared" / "bench")
    parser.add_argument("--kit", type=Path, default=kit, help="folder of the measuring tools")
    options = parser.parse_args()
    question = orjson.dumps({"model": "x", "messages": [{"role": "user", "content": "say done"}]})
    print("| messages | JSON alone, ms | history in the body, ms | history on the server, ms |")
    print("|---:|---:|---:|---:|")
    with (
        tempfile.TemporaryDirectory() as folder,
        scripted_provider(options.kit) as provider,
        hermes_server(Path(folder) / "home", provider) as server,
    ):
        for messages in LENGTHS:
            whole = orjson.dumps({"model": "x", "messages": conversation(messages)})
            figures = (
                cost_of_json(messages),
                cpu_of_a_turn(server, whole),
                cpu_of_a_turn(server, question, stored_session(server, messages)),
            )
            print(f"| {messages:,} | " + " | ".join(map(number, figures)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
