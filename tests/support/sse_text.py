"""Event streams as a client reads them: by the book, and without our own decoder."""

import json
from typing import Any


def events_of(body: bytes) -> list[Any]:
    """Payloads in order: objects, texts that are no JSON, (name, payload) for named events."""
    found: list[Any] = []
    for block in body.decode().split("\n\n"):
        name, lines = "", []
        for line in block.split("\n"):
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                lines.append(line[5:].removeprefix(" "))
        if not lines:
            continue
        text = "\n".join(lines)
        payload = json.loads(text) if text.startswith("{") else text
        found.append((name, payload) if name else payload)
    return found
