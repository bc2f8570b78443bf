"""The settings of a home folder: config.yaml, .env and the process environment, read as one.

The only module that looks at the process environment. What settings exist is in ``settings``;
changing them is ``config_change``'s.
"""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import pydantic

from hermes.errors import ConfigError
from hermes.hermes_cli import (
    dotenv_file,
    key_check,
    spellings,
    tools_config,
    value_errors,
    yaml_file,
)
from hermes.hermes_cli.settings import APIServerExtra, Settings

_log = logging.getLogger(__name__)

FILE_NAME = "config.yaml"

VARIABLES: Mapping[str, tuple[str, ...]] = {
    "API_SERVER_ENABLED": ("platforms", "api_server", "enabled"),
    "API_SERVER_KEY": ("platforms", "api_server", "extra", "key"),
    "API_SERVER_HOST": ("platforms", "api_server", "extra", "host"),
    "API_SERVER_PORT": ("platforms", "api_server", "extra", "port"),
    "API_SERVER_CORS_ORIGINS": ("platforms", "api_server", "extra", "cors_origins"),
    "API_SERVER_MODEL_NAME": ("platforms", "api_server", "extra", "model_name"),
    "HERMES_STREAM_READ_TIMEOUT": ("agent", "stream_read_timeout"),
    "HERMES_STREAM_STALE_TIMEOUT": ("agent", "stream_stale_timeout"),
    "HERMES_LOCAL_STREAM_STALE_TIMEOUT": ("agent", "local_stream_stale_timeout"),
}
"""Variables that stand over a key of config.yaml."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings and where they came from.

    ``warnings`` are for the operator and hold no secret. ``environment`` is .env with the
    process environment over it; it does hold secrets.
    """

    settings: Settings
    home: Path
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def with_api_server(self, **values: object) -> "LoadedSettings":
        """Return the same with other values for the HTTP surface.

        Raises:
            ConfigError: a value is wrong.
        """
        platform = self.settings.platforms.api_server
        try:
            extra = APIServerExtra.model_validate({**platform.extra.model_dump(), **values})
        except pydantic.ValidationError as error:
            names = {("port",): "--port", ("host",): "--host"}
            raise ConfigError(value_errors.describe(error, names)) from None
        changed = platform.model_copy(update={"extra": extra})
        platforms = self.settings.platforms.model_copy(update={"api_server": changed})
        return replace(self, settings=self.settings.model_copy(update={"platforms": platforms}))


class _Stamp(NamedTuple):
    """What tells that nothing has changed since the last reading."""

    files: tuple[tuple[int, int, int], ...]
    variables: dict[Any, Any]


class _Reading(NamedTuple):
    stamp: _Stamp
    raw: dict[str, Any]
    loaded: LoadedSettings


_readings: dict[Path, _Reading] = {}
_refused: dict[Path, _Stamp] = {}


def hermes_home() -> Path:
    """Return the folder of settings and state: HERMES_HOME, or ``~/.hermes``."""
    named = os.environ.get("HERMES_HOME", "").strip()
    return Path(named).expanduser() if named else Path.home() / ".hermes"


def home_variable() -> str | None:
    """Return HERMES_HOME as it stands, the cheapest way to see that it has not changed."""
    return os.environ.get("HERMES_HOME")


def set_home(path: Path) -> None:
    """Make ``path`` the home folder of this process and of those that it starts."""
    os.environ["HERMES_HOME"] = str(path.expanduser().resolve())


def process_environment() -> dict[str, str]:
    """Return a copy of the process environment."""
    return dict(os.environ)


def environment(home: Path) -> dict[str, str]:
    """Return ``home``'s .env with the process environment over it.

    A variable that is empty in the process counts as not set there.

    Raises:
        ConfigError: .env cannot be read.
    """
    stored = dotenv_file.read_variables(home)
    return stored | {
        name: text for name, text in process_environment().items() if text or name not in stored
    }


def load_config() -> dict[str, Any]:
    """Return the settings of ``hermes_home`` as plain data, unchecked; do not change the result.

    Spelling is the usual one and variables are filled in; no defaults are.

    Raises:
        ConfigError: a file cannot be read.
    """
    home = hermes_home()
    stamp = _stamp(home)
    kept = _readings.get(home)
    if kept is not None and kept.stamp == stamp:
        return kept.raw
    return _gather(home)[0]


def load_settings(home: Path | None = None) -> LoadedSettings:
    """Return the checked settings of ``home``, by default of ``hermes_home``.

    Read again only when a file or a variable has changed; otherwise it takes microseconds.

    Raises:
        ConfigError: a file cannot be read or a value is wrong; the message names file, line or
            key, what is expected, and never a secret.
    """
    place = hermes_home() if home is None else home
    stamp = _stamp(place)
    kept = _readings.get(place)
    if kept is None or kept.stamp != stamp:
        raw, loaded = _read(place)
        kept = _readings[place] = _Reading(stamp, raw, loaded)
    return kept.loaded


def current_settings(home: Path | None = None) -> LoadedSettings:
    """Return what ``load_settings`` does; after a change for the worse, the last good settings.

    For a process that runs on while somebody edits the files: the mistake is logged, once.

    Raises:
        ConfigError: as ``load_settings``, when there were no good settings yet.
    """
    place = hermes_home() if home is None else home
    try:
        return load_settings(place)
    except ConfigError as error:
        kept = _readings.get(place)
        if kept is None:
            raise
        stamp = _stamp(place)
        if _refused.get(place) != stamp:
            _refused[place] = stamp
            _log.error("the settings were changed and cannot be used; the last stay: %s", error)
        return kept.loaded


def _stamp(home: Path) -> _Stamp:
    # Decoding the environment costs 60 µs, CPython's own encoded mapping 1 µs; this runs each turn.
    variables = getattr(os.environ, "_data", None)
    return _Stamp(
        (_mark(f"{home}/{FILE_NAME}"), _mark(f"{home}/{dotenv_file.FILE_NAME}")),
        dict(os.environ if variables is None else variables),
    )


def _mark(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _read(home: Path) -> tuple[dict[str, Any], LoadedSettings]:
    raw, variables, warnings = _gather(home)
    try:
        settings = Settings.model_validate(raw)
    except pydantic.ValidationError as error:
        text = value_errors.describe(error, _set_names(variables))
        raise ConfigError(f"{home / FILE_NAME}: {text}", code="wrong_value") from None
    warnings += [*key_check.key_warnings(raw), *tools_config.toolset_warnings(raw)]
    if settings.gateway.multiplex_profiles:
        warnings.append(
            "config.yaml: gateway.multiplex_profiles has no effect: a server serves one profile."
        )
    loaded = LoadedSettings(
        settings=settings, home=home, warnings=tuple(warnings), environment=variables
    )
    return raw, loaded


def mistakes(home: Path, values: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Return what would be wrong in ``home`` if config.yaml held ``values``: by key, in words.

    Raises:
        ConfigError: .env cannot be read.
    """
    variables = environment(home)
    try:
        Settings.model_validate(_filled(values, variables, []))
    except pydantic.ValidationError as error:
        return value_errors.mistakes(error, _set_names(variables))
    return {}


def _set_names(variables: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    return {path: name for name, path in VARIABLES.items() if variables.get(name, "").strip()}


def _gather(home: Path) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    document = yaml_file.read_document(home / FILE_NAME)
    variables = environment(home)
    warnings = [
        f"config.yaml: {name} stands there twice; the last one counts."
        for name in document.duplicates
    ]
    return _filled(document.values, variables, warnings), variables, warnings


def _filled(
    values: Mapping[str, Any], variables: Mapping[str, str], warnings: list[str]
) -> dict[str, Any]:
    """Bring the settings to their usual spelling and fill in what variables say."""
    raw = _with_references(spellings.normalised(values), variables, warnings)
    _put_endpoint_keys(raw, variables, warnings)
    _put_variables(raw, variables)
    return raw


def _with_references(
    raw: dict[str, Any], variables: Mapping[str, str], warnings: list[str]
) -> dict[str, Any]:
    """Put values in place of ``${NAME}``."""

    def filled(text: str, place: str) -> str | None:
        if "${" not in text:
            return text
        missing = [name for name in _REFERENCE.findall(text) if not variables.get(name)]
        if missing and key_check.is_known_key(place.split(".")):
            names = ", ".join(missing)
            warnings.append(f"config.yaml: {place} refers to {names}, which is not set.")
        if missing and _REFERENCE.fullmatch(text):
            return None
        return _REFERENCE.sub(lambda match: variables.get(match[1]) or match[0], text)

    return cast("dict[str, Any]", spellings.each_text(raw, filled))


def _put_endpoint_keys(
    raw: dict[str, Any], variables: Mapping[str, str], warnings: list[str]
) -> None:
    for place in spellings.endpoint_places(raw):
        name = place.get("key_env")
        if not isinstance(name, str) or not name or place.get("api_key"):
            continue
        key = variables.get(name, "").strip()
        if key:
            place["api_key"] = key
        else:
            warnings.append(f"config.yaml: key_env names {name}, which is not set.")


def _put_variables(raw: dict[str, Any], variables: Mapping[str, str]) -> None:
    for name, path in VARIABLES.items():
        value = variables.get(name, "").strip()
        if value:
            _put(raw, path, value)
    if variables.get("API_SERVER_KEY", "").strip() and not variables.get("API_SERVER_ENABLED"):
        _put(raw, VARIABLES["API_SERVER_ENABLED"], value=True)
    origins = variables.get("API_SERVER_CORS_ORIGINS", "").split(",")
    listed = [text for origin in origins if (text := origin.strip())]
    if listed:
        _put(raw, VARIABLES["API_SERVER_CORS_ORIGINS"], listed)


def _put(raw: dict[str, Any], path: Sequence[str], value: object) -> None:
    place = raw
    for step in path[:-1]:
        inner = place.get(step)
        if inner is None:
            inner = place[step] = {}
        if not isinstance(inner, dict):
            return  # a wrong type in the file: checking names it
        place = cast("dict[str, Any]", inner)
    place[path[-1]] = value
