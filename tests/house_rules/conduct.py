"""Rules on conduct: names, docstrings, errors, and what only certain modules may touch."""

import ast
from collections.abc import Iterator

from house_rules.source import Finding, Function, Module

FORBIDDEN_NAMES = frozenset({"util", "utils", "helper", "helpers", "common", "manager", "misc"})
BROAD = frozenset({"Exception", "BaseException"})
JSON_EDGES = (
    "hermes.wire",
    "hermes.gateway",
    "hermes.run_agent",
    "hermes.hermes_state",
    "hermes.hermes_cli",
)
"""Where JSON enters and leaves: a plain dict is the honest type of a parameter there."""


def module_docstring(module: Module) -> Iterator[Finding]:
    """Every module says what it is for."""
    text = ast.get_docstring(module.tree) or ""
    if len(text) < 20 or text.startswith("To be described"):
        yield Finding(rule="module-docstring", where=module.path, detail="says nothing")


def public_docstring(module: Module) -> Iterator[Finding]:
    """Public functions and classes state their contract; overrides and setters inherit theirs."""
    functions = tuple(f"{where}." for where, _ in module.functions())
    for where, node in module.definitions():
        private = any(part.startswith("_") for part in where.partition("::")[2].split("."))
        if private or where.startswith(functions) or _inherits_contract(node):
            continue
        if not ast.get_docstring(node):
            yield Finding(rule="public-docstring", where=where, detail="has no docstring")


def _inherits_contract(node: Function | ast.ClassDef) -> bool:
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return bool(names & {"override", "overload", "setter", "deleter"})


def module_name(module: Module) -> Iterator[Finding]:
    """A module is a noun of the domain."""
    bad = FORBIDDEN_NAMES & set(module.name.split("."))
    if bad:
        yield Finding(rule="module-name", where=module.path, detail=f"is named {min(bad)}")


def broad_except(module: Module) -> Iterator[Finding]:
    """Only the edges of the program catch everything; one that ends in ``raise`` only cleans up."""
    for where, node in module.nodes():
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _raises_again(node):
            yield Finding(
                rule="broad-except",
                where=where,
                detail=f"line {node.lineno} catches everything",
            )


def silent_except(module: Module) -> Iterator[Finding]:
    """What catches everything logs the traceback."""
    for where, node in module.nodes():
        if not isinstance(node, ast.ExceptHandler) or not _is_broad(node) or _raises_again(node):
            continue
        if not any(_logs_traceback(child) for child in ast.walk(node)):
            yield Finding(
                rule="silent-except",
                where=where,
                detail=f"line {node.lineno} logs no traceback",
            )


def _is_broad(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return True
    types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(isinstance(kind, ast.Name) and kind.id in BROAD for kind in types)


def _raises_again(node: ast.ExceptHandler) -> bool:
    last = node.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _logs_traceback(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    by_name = isinstance(node.func, ast.Attribute) and node.func.attr == "exception"
    return by_name or any(keyword.arg == "exc_info" for keyword in node.keywords)


def no_print(module: Module) -> Iterator[Finding]:
    """Only the command line writes to the terminal."""
    if module.within("hermes.hermes_cli"):
        return
    for where, node in module.nodes():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ):
            yield Finding(rule="no-print", where=where, detail=f"line {node.lineno} prints")


def no_environment(module: Module) -> Iterator[Finding]:
    """Settings are read once, in ``hermes_cli.config``; nothing else looks at the environment."""
    if module.within("hermes.hermes_cli.config"):
        return
    for where, node in module.nodes():
        if _reads_environment(node):
            yield Finding(
                rule="no-environment",
                where=where,
                detail=f"line {getattr(node, 'lineno', '?')} reads the environment",
            )


def _reads_environment(node: ast.AST) -> bool:
    names = {"environ", "environb", "getenv", "putenv", "unsetenv"}
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and any(alias.name in names for alias in node.names)
    if not isinstance(node, ast.Attribute) or node.attr not in names:
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "os"


def no_bare_task(module: Module) -> Iterator[Finding]:
    """A task has an owner: a group, or the one helper that keeps and logs it."""
    for where, node in module.nodes():
        if isinstance(node, ast.Call) and _starts_bare_task(node.func):
            yield Finding(
                rule="no-bare-task", where=where, detail=f"line {node.lineno} starts a loose task"
            )


def _starts_bare_task(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "create_task"
    if not isinstance(function, ast.Attribute) or function.attr != "create_task":
        return False
    receiver = ast.unparse(function.value)
    return receiver == "asyncio" or "loop" in receiver


def no_loose_dict(module: Module) -> Iterator[Finding]:
    """A public function away from the JSON edges takes a type, not a dict of anything."""
    if module.within(*JSON_EDGES):
        return
    loose = {"dict", "dict[str, Any]", "dict[Any, Any]", "dict[str, object]"}
    for where, node in module.functions():
        if any(part.startswith("_") for part in where.partition("::")[2].split(".")):
            continue
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation and ast.unparse(argument.annotation) in loose:
                yield Finding(
                    rule="no-loose-dict",
                    where=where,
                    detail=f"{argument.arg} is a dict of anything",
                )


def bare_package(module: Module) -> Iterator[Finding]:
    """A package that spans several layers holds no code of its own."""
    spanning = {"hermes", "hermes.hermes_cli", "hermes.gateway", "hermes.gateway.platforms"}
    if module.name not in spanning:
        return
    for node in module.tree.body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        version = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
        if not text and not version:
            yield Finding(
                rule="bare-package", where=module.path, detail=f"line {node.lineno} is code"
            )
