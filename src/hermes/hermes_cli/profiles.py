"""Profiles: home folders below the main one, each with settings, keys and sessions of its own.

Running several at once in one server is the gateway's.
"""

import re
from pathlib import Path

from hermes.errors import ConfigError
from hermes.hermes_cli import config

DEFAULT = "default"
FOLDER = "profiles"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def get_active_profile_name() -> str:
    """Return the name of the profile whose home is in use; ``default`` for the main home."""
    home = config.hermes_home()
    return home.name if home.parent.name == FOLDER else DEFAULT


def profile_home(home: Path, name: str) -> Path:
    """Return the home of a profile of ``home``, which may be a profile's own.

    Raises:
        ConfigError: ``unknown_profile``; the message names those that exist.
    """
    main = home.parent.parent if home.parent.name == FOLDER else home
    if name == DEFAULT:
        return main
    path = main / FOLDER / name
    if _NAME.fullmatch(name) and path.is_dir():
        return path
    known = ", ".join(profile_names(main))
    raise ConfigError(
        f"There is no profile {name!r} in {main / FOLDER}; there are: {known}. "
        f"A profile is a folder there.",
        code="unknown_profile",
    )


def profile_names(main: Path) -> list[str]:
    """Return the names of all profiles of a main home, ``default`` first."""
    folder = main / FOLDER
    found = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    return [DEFAULT, *sorted(name for name in found if _NAME.fullmatch(name))]
