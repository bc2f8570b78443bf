"""``hermes config``: the settings, shown and changed. No secret is ever printed.

What the settings mean is in ``hermes_cli.settings``; how they are written in ``config_change``.
"""

import json
import sys
from typing import Any, cast

import click
import yaml
from click.shell_completion import CompletionItem

from hermes.errors import ConfigError
from hermes.hermes_cli import config, config_change, dotenv_file, key_check, masking


def _complete_key(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    del ctx, param
    return [CompletionItem(key) for key in key_check.known_keys() if key.startswith(text)]


_key = click.argument("key", shell_complete=_complete_key)


@click.group()
def command() -> None:
    """Show and change the settings (config.yaml and .env in the home folder)."""


@command.command()
@click.option("--all", "everything", is_flag=True, help="With all defaults.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(everything: bool, as_json: bool) -> None:
    """Print the settings in effect, secrets masked."""
    loaded = config.load_settings()
    values = loaded.settings.model_dump() if everything else config.load_config()
    hidden = masking.shown(values)
    if as_json:
        click.echo(json.dumps(hidden, indent=2, ensure_ascii=False))
        return
    click.echo(f"# {loaded.home / config.FILE_NAME}, with .env and the environment over it")
    click.echo(_as_yaml(hidden))


@command.command()
@_key
def get(key: str) -> None:
    """Print the value of KEY (or of a variable such as OPENAI_API_KEY, masked)."""
    loaded = config.load_settings()
    if config_change.is_variable(key):
        value = loaded.environment.get(key)
        if value is None:
            raise ConfigError(f"{key} is not set.", code="not_set")
        click.echo(masking.mask(value) if key_check.is_secret(key) else value)
        return
    config_change.check_key(key)
    value = masking.shown(_value_at(loaded.settings.model_dump(), key), key)
    click.echo(_as_yaml(value) if isinstance(value, dict | list) else _as_word(value))


@command.command("set")
@_key
@click.argument("value", required=False)
def set_(key: str, value: str | None) -> None:
    """Set KEY to VALUE: a setting, or a variable in .env such as OPENAI_API_KEY.

    Without VALUE it is asked for, or read from a pipe, so that a secret stays out of the
    shell's history.
    """
    text = _asked(key) if value is None else value
    home = config.hermes_home()
    change = config_change.set_value(home, key, _parsed(key, text))
    click.echo(f"Set {change.name} in {change.path}.")
    if change.overridden_by:
        click.echo(f"Note: {change.overridden_by} is set and stands over it.", err=True)


@command.command()
@_key
def unset(key: str) -> None:
    """Take KEY out of config.yaml (or a variable out of .env); its default is in effect then."""
    if not config_change.unset_value(config.hermes_home(), key):
        raise ConfigError(f"{key} was not set.", code="not_set")
    click.echo(f"Removed {key}.")


@command.command()
@click.option("--env", "env", is_flag=True, help="The path of .env instead.")
def path(env: bool) -> None:
    """Print where config.yaml is."""
    click.echo(config.hermes_home() / (dotenv_file.FILE_NAME if env else config.FILE_NAME))


@command.command()
@click.option("--strict", is_flag=True, help="End with code 1 when there is a warning.")
def check(strict: bool) -> None:
    """Check the settings: mistakes, unknown keys, keys without effect."""
    loaded = config.load_settings()
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    count = len(loaded.warnings)
    click.echo(
        f"{loaded.home / config.FILE_NAME} can be used"
        + (f"; {count} warning(s)." if count else ".")
    )
    if strict and count:
        sys.exit(1)


def _value_at(values: Any, key: str) -> Any:
    for step in key.split("."):
        if isinstance(values, dict):
            values = cast("dict[str, Any]", values).get(step)
        elif isinstance(values, list) and step.isdecimal():
            items = cast("list[Any]", values)
            values = items[int(step)] if int(step) < len(items) else None
        else:
            return None
    return values


def _as_word(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_yaml(value: Any) -> str:
    if not value:
        return ""
    # The stubs leave one of its types open.
    text: str = yaml.safe_dump(  # pyright: ignore[reportUnknownMemberType]
        value, sort_keys=False, allow_unicode=True, width=4096
    )
    return text.rstrip("\n")


def _asked(key: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    hidden = key_check.is_secret(key)
    return click.prompt(f"{key}{' (not shown)' if hidden else ''}", hide_input=hidden)


def _parsed(key: str, text: str) -> Any:
    """A secret or a variable is text as it stands; everything else is read as YAML."""
    if config_change.is_variable(key) or key_check.is_secret(key):
        return text
    try:
        value: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
    return cast("Any", value) if isinstance(value, bool | int | float | list | dict) else text
