"""The .env file of a home folder: variables read from it and written to it.

Which variable means what is of no concern here.
"""

import io
import re
from pathlib import Path

from hermes.errors import ConfigError
from hermes.hermes_cli.private_file import held_lock, write_private
from hermes.hermes_cli.yaml_file import read_text

FILE_NAME = ".env"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,~-]+")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?'?([A-Za-z_][A-Za-z0-9_]*)'?\s*=")


def read_variables(home: Path) -> dict[str, str]:
    """Return the variables of ``home``'s .env; values are taken as they stand, without ``$``.

    Raises:
        ConfigError: ``config_unreadable``.
    """
    text = read_text(home / FILE_NAME)
    if not text:
        return {}
    from dotenv import dotenv_values

    values = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in values.items() if value is not None}


def store_variable(home: Path, name: str, value: str | None) -> None:
    """Set a variable in ``home``'s .env (mode 600), or take it out; other lines stay.

    Raises:
        ConfigError: the name is no variable's, the value has a line break, or the file cannot
            be read or written.
    """
    with held_lock(home):
        replace_variable(home, name, value)


def replace_variable(home: Path, name: str, value: str | None) -> None:
    """Do what ``store_variable`` does for a caller that holds the lock."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a name of a variable.")
    if value is not None and re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
        raise ConfigError(f"The value of {name} holds a line break or a control character.")
    path = home / FILE_NAME
    lines = read_text(path).splitlines()
    places = [index for index, line in enumerate(lines) if _assigned(line) == name]
    kept = [line for index, line in enumerate(lines) if index not in places]
    if value is not None:
        kept.insert(places[0] if places else len(kept), f"{name}={_quoted(value)}")
    elif not places:
        return
    write_private(path, "".join(f"{line}\n" for line in kept))


def _assigned(line: str) -> str:
    match = _ASSIGNMENT.match(line)
    return match[1] if match else ""


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
