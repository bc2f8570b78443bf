"""Identifiers: how they are made and which foreign ones are safe to take.

Nothing here is a secret; keys are made where settings are written.
"""

import os
import re

_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f/\\\ud800-\udfff]|^\.|\.\.|%2e|%2f|%5c|^[A-Za-z]:", re.IGNORECASE
)

MAX_ID_LENGTH = 256
"""Longest session id or session key taken from a client, in characters."""


def new_id(prefix: str, size: int = 14) -> str:
    """Return ``prefix`` followed by ``2 * size`` random hexadecimal digits."""
    return prefix + os.urandom(size).hex()


def new_session_id() -> str:
    """Return an id for a conversation."""
    return new_id("ses_")


def new_turn_id() -> str:
    """Return an id for one answer to one user input."""
    return new_id("turn_")


def new_call_id() -> str:
    """Return an id for a tool call whose provider gave none."""
    return new_id("call_", 12)


def new_approval_id() -> str:
    """Return an id for a question whether a call may run."""
    return new_id("appr_", 12)


def is_safe_id(text: str) -> bool:
    """Whether a client's id may name a session: no path, no control character, bounded length."""
    return 0 < len(text) <= MAX_ID_LENGTH and _UNSAFE.search(text) is None
