"""Changes of single values in a YAML file; comments and the order of everything else stay.

Whether a key or a value makes sense is the caller's to check.
"""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, cast

import yaml

from hermes.errors import ConfigError
from hermes.hermes_cli.private_file import write_private
from hermes.hermes_cli.yaml_file import parse_document, read_text


def put(path: Path, key: Sequence[str], value: Any) -> None:
    """Set the value at ``key`` (its steps; a number is a place in a list).

    Raises:
        ConfigError: the file cannot be read, is not valid or cannot be written; ``config_path``
            when a step leads into something that holds no other settings.
    """
    writer, tree = _load_tree(path)
    place = tree
    for depth, step in enumerate(key[:-1]):
        place = _step_into(place, step, ".".join(key[: depth + 1]))
    if isinstance(place, list):
        _put_into_list(cast("list[Any]", place), key[-1], _as_written(value), ".".join(key))
    else:
        place[key[-1]] = _as_written(value)
    _save(path, writer, tree)


def remove(path: Path, key: Sequence[str]) -> bool:
    """Take the value at ``key`` out, and the sections that are empty then; whether it was there.

    Raises:
        ConfigError: the file cannot be read, is not valid or cannot be written.
    """
    writer, tree = _load_tree(path)
    places: list[Any] = []
    place = tree
    for step in key:
        places.append(place)
        place = _child(place, step)
        if place is None:
            return False
    for holder, step in zip(reversed(places), reversed(key), strict=True):
        del holder[int(step) if isinstance(holder, list) else step]
        if holder:
            break
    _save(path, writer, tree)
    return True


def _load_tree(path: Path) -> tuple[Any, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    text = read_text(path)
    parse_document(text, path)
    writer: Any = YAML()
    writer.preserve_quotes = True
    writer.allow_duplicate_keys = True
    writer.width = 4096
    return writer, writer.load(text) or CommentedMap()


def _child(place: Any, step: str) -> Any:
    if isinstance(place, list):
        items = cast("list[Any]", place)
        return items[int(step)] if step.isdecimal() and int(step) < len(items) else None
    return cast("dict[str, Any]", place).get(step) if isinstance(place, dict) else None


def _step_into(place: Any, step: str, name: str) -> Any:
    child = _child(place, step)
    if child is None and isinstance(place, dict):
        child = place[step] = {}
    if not isinstance(child, (dict, list)):
        raise ConfigError(f"{name} does not hold other settings.", code="config_path")
    return cast("Any", child)


def _put_into_list(items: list[Any], step: str, value: Any, name: str) -> None:
    if not step.isdecimal() or int(step) > len(items):
        raise ConfigError(f"{name} is not a place in a list.", code="config_path")
    items[int(step) : int(step) + 1] = [value]


def _as_written(value: Any) -> Any:
    """Quote a text that YAML would read as something else (``yes``, ``1.5``, ``null``)."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, str):
        return value if _reads_as(value) == value else DoubleQuotedScalarString(value)
    if isinstance(value, list):
        return [_as_written(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _as_written(item) for key, item in items}
    return value


def _reads_as(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return None


def _save(path: Path, writer: Any, tree: Any) -> None:
    out = StringIO()
    if tree:
        writer.dump(tree, out)
    parse_document(out.getvalue(), path)
    write_private(path, out.getvalue())
