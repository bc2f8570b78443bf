"""Text made safe to write to a terminal.

Nothing is redacted here; ``redaction`` does that.
"""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and newline; an escape among them could rewrite the screen."""


def clean(text: str) -> str:
    """Return ``text`` without the characters that a terminal would act upon."""
    return _CONTROL.sub("", text)


def one_line(text: str, limit: int) -> str:
    """Return ``text`` cleaned, on one line, and cut to ``limit`` characters with an ellipsis."""
    line = " ".join(clean(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
