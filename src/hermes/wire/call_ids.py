"""Ids of tool calls in the form that an endpoint takes.

A conversation may have calls of several endpoints in it, each with ids of its own fashion. The
same id always becomes the same one, so calls and results stay paired.
"""

import hashlib
import re

_SAFE = re.compile(r"[a-zA-Z0-9_-]+")


def fitting_id(call_id: str, *, max_length: int = 0, exact_length: int = 0) -> str:
    """Return ``call_id`` if it is made of letters, digits, ``_`` and ``-`` and fits, else another.

    ``exact_length`` asks for letters and digits of just that number.
    """
    if exact_length:
        fits = len(call_id) == exact_length and call_id.isascii() and call_id.isalnum()
        return call_id if fits else _digest(call_id)[:exact_length]
    too_long = max_length and len(call_id) > max_length
    if call_id and not too_long and _SAFE.fullmatch(call_id):
        return call_id
    return f"call_{_digest(call_id)[:24]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
