"""A YAML file as a mapping, with the place of each mistake.

What the keys mean is of no concern here; changing a file is ``yaml_edit``'s.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from hermes.errors import ConfigError

_MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file's mapping, with the keys that stand in it twice (the last one counts)."""

    values: dict[str, Any]
    duplicates: tuple[str, ...] = ()


def read_document(path: Path) -> Document:
    """Return what a YAML file holds; nothing where there is no file.

    Raises:
        ConfigError: ``config_unreadable`` when it cannot be opened, ``config_syntax`` with line
            and column when it is not YAML or not a mapping. The file is left as it is.
    """
    return parse_document(read_text(path), path)


def read_text(path: Path) -> str:
    """Return a file's text, "" where there is no file.

    Raises:
        ConfigError: ``config_unreadable``.
    """
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 text (byte {error.start}).", code="config_unreadable"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"Cannot read {path}: {error.strerror or error}.", code="config_unreadable"
        ) from error


def parse_document(text: str, path: Path) -> Document:
    """Return what ``text`` holds; ``path`` and errors as in ``read_document``."""
    try:
        values, duplicates = _load(text)
    except yaml.YAMLError as error:
        raise ConfigError(_mistake(error, path), code="config_syntax") from error
    except ValueError as error:  # a date such as 2026-02-31
        raise ConfigError(f"{path} holds a broken value: {error}.", code="config_syntax") from error
    if values is None:
        return Document(values={})
    if not isinstance(values, dict):
        raise ConfigError(
            f"{path} must hold 'key: value' lines, but holds {kind_of(values)}.",
            code="config_syntax",
        )
    return Document(
        values=cast("dict[str, Any]", _with_text_keys(cast("object", values))),
        duplicates=duplicates,
    )


def _load(text: str) -> tuple[object, tuple[str, ...]]:
    loader: Any = (yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, ()
        return loader.construct_document(node), tuple(_duplicates(node, ""))
    finally:
        loader.dispose()


def _duplicates(node: yaml.Node, prefix: str) -> Iterator[str]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _duplicates(item, f"{prefix}{index}.")
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        name, line = f"{prefix}{key.value}", key.start_mark.line + 1
        if name in lines:
            yield f"{name} (lines {lines[name]} and {line})"
        lines[name] = line
        yield from _duplicates(value, f"{name}.")


def _mistake(error: yaml.YAMLError, path: Path) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"{path} is not valid YAML: {str(error).splitlines()[0]}."
    mark = error.problem_mark or error.context_mark
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = (error.problem or error.context or "").strip()
    hint = " Indent with spaces, not tabs." if "cannot start any token" in problem else ""
    return f"{path} is not valid YAML{place}: {problem}.{hint}"


def _with_text_keys(value: object) -> object:
    if isinstance(value, dict):
        items = cast("dict[Hashable, object]", value).items()
        return {str(key): _with_text_keys(item) for key, item in items}
    if isinstance(value, list):
        return [_with_text_keys(item) for item in cast("list[object]", value)]
    return value


def kind_of(value: object) -> str:
    """Return what people call the type of a YAML value; never the value."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"),
        ((int, float), "a number"),
        (str, "text"),
        (Mapping, "a mapping"),
        ((list, tuple), "a list"),
        (type(None), "nothing"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "a date")
