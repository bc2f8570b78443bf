"""Changes of settings: checked first, written whole; secrets go to .env and not to config.yaml.

Reading is ``config``'s.
"""

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hermes.errors import ConfigError
from hermes.hermes_cli import auth, config, dotenv_file, key_check, yaml_edit, yaml_file
from hermes.hermes_cli.private_file import held_lock

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NOT_STORED = frozenset({"HERMES_HOME", "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"})
_SERVER_KEY = "platforms.api_server.extra.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Where a setting was written: the file, the name there, and what still stands over it."""

    path: Path
    name: str
    overridden_by: str = ""


def is_variable(key: str) -> bool:
    """Whether a name is one of a variable in .env and not a key of config.yaml."""
    return _VARIABLE.fullmatch(key) is not None


def set_value(home: Path, key: str, value: Any) -> Change:
    """Set a key of config.yaml, or a variable of .env, in ``home``.

    A secret is written to .env, with a reference to it in config.yaml.

    Raises:
        ConfigError: ``unknown_key`` with the nearest one; the value is wrong; or a file cannot
            be read or written. Nothing has changed then.
    """
    if is_variable(key):
        return _set_variable(home, key, str(value))
    check_key(key)
    if key == _SERVER_KEY:
        change = _set_variable(home, auth.KEY_VARIABLE, str(value))
        _remove(home, key)
        return change
    steps = key.split(".")
    is_reference = isinstance(value, str) and _REFERENCE.fullmatch(value)
    if key_check.is_secret(key) and not is_reference and not isinstance(value, dict):
        return _set_secret(home, steps, str(value))
    with held_lock(home):
        _put_checked(home, steps, value)
    return Change(
        path=home / config.FILE_NAME, name=key, overridden_by=_overriding(home, tuple(steps))
    )


def unset_value(home: Path, key: str) -> bool:
    """Take a key out of config.yaml, with the secret it refers to; whether there was one.

    Raises:
        ConfigError: ``unknown_key``, or a file cannot be read or written.
    """
    if is_variable(key):
        return _remove_variable(home, key)
    value = _value_at(yaml_file.read_document(home / config.FILE_NAME).values, key.split("."))
    if value is None:
        check_key(key)
    removed = _remove(home, key)
    reference = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if reference is not None and reference[1] == _variable_of(key.split(".")):
        _remove_variable(home, reference[1])
    if key == _SERVER_KEY:
        removed = _remove_variable(home, auth.KEY_VARIABLE) or removed
    return removed


def check_key(key: str) -> None:
    """Refuse a key that does not exist.

    Raises:
        ConfigError: ``unknown_key``; the message names the nearest one.
    """
    if key and key_check.is_known_key(key.split(".")):
        return
    near = key_check.nearest_key(key)
    hint = f"did you mean {near}?" if near else "docs/configuration.md lists them."
    raise ConfigError(f"There is no setting {key!r}; {hint}", code="unknown_key")


def _set_variable(home: Path, name: str, value: str) -> Change:
    if name in _NOT_STORED:
        raise ConfigError(f"{name} has no effect in .env: set it where hermes is started.")
    if name == auth.KEY_VARIABLE:
        auth.check_server_key(value)
    dotenv_file.store_variable(home, name, value)
    over = name if config.process_environment().get(name, value) not in ("", value) else ""
    return Change(path=home / dotenv_file.FILE_NAME, name=name, overridden_by=over)


def _set_secret(home: Path, steps: Sequence[str], value: str) -> Change:
    name = _variable_of(steps)
    with held_lock(home):
        dotenv_file.replace_variable(home, name, value.strip())
        _put_checked(home, steps, f"${{{name}}}")
    return Change(path=home / dotenv_file.FILE_NAME, name=name)


def _variable_of(steps: Sequence[str]) -> str:
    return "HERMES_" + re.sub(r"[^A-Z0-9]+", "_", "_".join(steps).upper())


def _put_checked(home: Path, steps: Sequence[str], value: Any) -> None:
    path = home / config.FILE_NAME
    values = copy.deepcopy(yaml_file.read_document(path).values)
    if steps[0] == "model" and len(steps) > 1 and isinstance(values.get("model"), str):
        values["model"] = {"default": values["model"]}
        yaml_edit.put(path, ["model"], values["model"])
    _put(values, steps, value)
    mistakes = config.mistakes(home, values)
    if any(_concerns(place, steps) for place in mistakes):
        raise ConfigError(
            "; ".join(text for place, text in mistakes.items() if _concerns(place, steps))
        )
    yaml_edit.put(path, steps, value)


def _concerns(place: tuple[str, ...], steps: Sequence[str]) -> bool:
    shorter = min(len(place), len(steps))
    return tuple(steps[:shorter]) == place[:shorter]


def _put(values: Any, steps: Sequence[str], value: Any) -> None:
    for step in steps[:-1]:
        child: Any = _value_at(values, [step])
        if child is None and isinstance(values, dict):
            child = cast("dict[str, Any]", values).setdefault(step, {})
        values = child
    if isinstance(values, dict):
        cast("dict[str, Any]", values)[steps[-1]] = value
    elif isinstance(values, list) and steps[-1].isdecimal():
        items = cast("list[Any]", values)
        items[int(steps[-1]) : int(steps[-1]) + 1] = [value]


def _value_at(values: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(values, dict):
            values = cast("dict[str, Any]", values).get(step)
        elif isinstance(values, list) and step.isdecimal():
            items = cast("list[Any]", values)
            values = items[int(step)] if int(step) < len(items) else None
        else:
            return None
    return values


def _remove(home: Path, key: str) -> bool:
    with held_lock(home):
        return yaml_edit.remove(home / config.FILE_NAME, key.split("."))


def _remove_variable(home: Path, name: str) -> bool:
    there = name in dotenv_file.read_variables(home)
    if there:
        dotenv_file.store_variable(home, name, None)
    return there


def _overriding(home: Path, path: tuple[str, ...]) -> str:
    variables = config.environment(home)
    names = (name for name, place in config.VARIABLES.items() if place == path)
    return next((name for name in names if variables.get(name, "").strip()), "")
