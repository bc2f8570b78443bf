"""What a rule reads and what it says: a parsed module, a finding, the files of the project."""

import ast
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One breach of ``rule``.

    ``where`` is ``path`` or ``path::Class.function`` and stays the same when lines move; it is what
    an exception names. ``detail`` is for people.
    """

    rule: str
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Python file: ``path`` relative to the project, ``name`` as imported ("" in tests)."""

    path: str
    name: str
    text: str
    tree: ast.Module

    def within(self, *packages: str) -> bool:
        """True when the module is one of ``packages`` or lies below one."""
        return any(self.name == p or self.name.startswith(f"{p}.") for p in packages)

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Yield every function with its ``where``."""
        for where, node in self.definitions():
            if isinstance(node, Function):
                yield where, node

    def definitions(self) -> Iterator[tuple[str, Function | ast.ClassDef]]:
        """Yield every function and class, nested ones too, with its ``where``."""
        for where, node in self.nodes():
            if isinstance(node, Function | ast.ClassDef):
                yield where, node

    def nodes(self) -> tuple[tuple[str, ast.AST], ...]:
        """Return every node with the ``where`` of the innermost function or class around it.

        A function's or class's own node has its own ``where``.
        """
        return _nodes(self)


Rule: TypeAlias = Callable[[Module], Iterator[Finding]]


@cache
def _nodes(module: Module) -> tuple[tuple[str, ast.AST], ...]:
    found: list[tuple[str, ast.AST]] = []
    waiting: list[tuple[str, ast.AST]] = [("", module.tree)]
    while waiting:
        scope, parent = waiting.pop()
        for child in ast.iter_child_nodes(parent):
            inner = scope
            if isinstance(child, Function | ast.ClassDef):
                inner = f"{scope}.{child.name}" if scope else child.name
            found.append((f"{module.path}::{inner}" if inner else module.path, child))
            waiting.append((inner, child))
    return tuple(found)


def parse(path: str, text: str) -> Module:
    """Return the module that ``text`` would be at ``path``."""
    parts = Path(path).with_suffix("").parts
    inside = parts[1:] if parts[0] == "src" else ()
    name = ".".join(inside[:-1] if inside and inside[-1] == "__init__" else inside)
    return Module(path=path, name=name, text=text, tree=ast.parse(text))


@cache
def project_files() -> tuple[str, ...]:
    """Paths, relative to the project, of the files that are or would be under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(sorted(p for p in set(listed.split("\0")) if p and (ROOT / p).is_file()))


@cache
def modules(top: str) -> tuple[Module, ...]:
    """Return the parsed Python files below ``top``."""
    paths = [p for p in project_files() if p.startswith(f"{top}/") and p.endswith(".py")]
    return tuple(parse(p, (ROOT / p).read_text(encoding="utf-8")) for p in paths)
