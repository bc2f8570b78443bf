"""Rules on size: what no longer fits in a reader's head."""

import ast
from collections.abc import Iterator

from house_rules.source import Finding, Function, Module

MODULE_LINES = 400
FUNCTION_LINES = 50
NESTING = 4
PARAMETERS = 7
METHODS = 15

_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar)
_BLOCKS_AND_MATCH = (*_BLOCKS, ast.Match)


def module_length(module: Module) -> Iterator[Finding]:
    """A module has at most 400 lines."""
    lines = module.text.count("\n")
    if lines > MODULE_LINES:
        yield Finding(
            rule="module-length", where=module.path, detail=f"{lines} lines, {MODULE_LINES} allowed"
        )


def function_length(module: Module) -> Iterator[Finding]:
    """A function has at most 50 lines, its docstring included."""
    for where, node in module.functions():
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            yield Finding(
                rule="function-length",
                where=where,
                detail=f"{lines} lines, {FUNCTION_LINES} allowed",
            )


def nesting(module: Module) -> Iterator[Finding]:
    """Blocks lie at most four deep in a function; ``elif`` is no deeper than its ``if``."""
    for where, node in module.functions():
        depth = _depth(node.body)
        if depth > NESTING:
            yield Finding(rule="nesting", where=where, detail=f"{depth} deep, {NESTING} allowed")


def _depth(body: list[ast.stmt]) -> int:
    return max((_statement_depth(statement) for statement in body), default=0)


def _statement_depth(node: ast.stmt) -> int:
    if not isinstance(node, _BLOCKS_AND_MATCH):
        return 0
    inner = _depth(_own_bodies(node))
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        return max(1 + inner, _statement_depth(node.orelse[0]))
    return 1 + max(inner, _depth(getattr(node, "orelse", [])))


def _own_bodies(node: ast.stmt) -> list[ast.stmt]:
    bodies = list(getattr(node, "body", [])) + list(getattr(node, "finalbody", []))
    for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        bodies += part.body
    return bodies


def parameters(module: Module) -> Iterator[Finding]:
    """A function takes at most seven parameters, ``self`` and ``cls`` not counted."""
    for where, node in module.functions():
        count = len(_named_parameters(node))
        if count > PARAMETERS:
            yield Finding(
                rule="parameters", where=where, detail=f"{count} parameters, {PARAMETERS} allowed"
            )


def _named_parameters(node: Function) -> list[str]:
    arguments = node.args
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return named[1:] if named[:1] in (["self"], ["cls"]) else named


def methods(module: Module) -> Iterator[Finding]:
    """A class defines at most fifteen methods; overloads of one count once."""
    for where, node in module.definitions():
        if isinstance(node, ast.ClassDef):
            count = len({child.name for child in node.body if isinstance(child, Function)})
            if count > METHODS:
                yield Finding(
                    rule="methods", where=where, detail=f"{count} methods, {METHODS} allowed"
                )
