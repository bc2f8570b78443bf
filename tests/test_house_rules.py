"""The project keeps its house rules, and each rule can fail."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from house_rules import conduct, exceptions, layers, size, texts
from house_rules.source import ROOT, Finding, Module, Rule, modules, parse, project_files

CONTRACTS = ROOT / ".importlinter"


def has_layer(module: Module) -> Iterator[Finding]:
    return layers.has_layer(module, layers.layered_names(CONTRACTS))


SIZE_RULES: tuple[Rule, ...] = (
    size.module_length,
    size.function_length,
    size.nesting,
    size.parameters,
    size.methods,
)
SOURCE_RULES: tuple[Rule, ...] = (
    *SIZE_RULES,
    conduct.module_docstring,
    conduct.public_docstring,
    conduct.module_name,
    conduct.broad_except,
    conduct.silent_except,
    conduct.no_print,
    conduct.no_environment,
    conduct.no_bare_task,
    conduct.no_loose_dict,
    conduct.bare_package,
    has_layer,
)
TEXT_RULES = (texts.registry_host, texts.workplace_path)
BINARY = {".gguf", ".gz", ".ico", ".jpg", ".png", ".wav", ".webp", ".woff2", ".zip"}


@cache
def all_findings() -> tuple[Finding, ...]:
    """Every breach in the project, allowed or not."""
    found: list[Finding] = []
    for rule in SOURCE_RULES:
        for module in modules("src"):
            found += rule(module)
    for rule in SIZE_RULES:
        for module in (*modules("bench"), *modules("scripts")):
            found += rule(module)
    # A table of cases is as long as its cases; a test's shape still has to be simple.
    for rule in (size.nesting, size.parameters, size.methods):
        for module in modules("tests"):
            found += rule(module)
    for path in project_files():
        if Path(path).suffix not in BINARY:
            text = (ROOT / path).read_text(encoding="utf-8")
            found += [finding for rule in TEXT_RULES for finding in rule(path, text)]
    return tuple(found)


def test_the_project_keeps_the_rules() -> None:
    broken = exceptions.not_allowed(all_findings(), exceptions.read_exceptions())

    assert not broken, "\n" + "\n".join(map(str, broken))


def test_every_exception_is_needed_and_says_why() -> None:
    allowed = exceptions.read_exceptions()
    idle = exceptions.not_needed(all_findings(), allowed)

    assert not idle, "\n" + "\n".join(f"no longer needed: {e.rule} at {e.where}" for e in idle)
    assert not [entry.where for entry in allowed if len(entry.reason) < 20]
    assert len({(entry.rule, entry.where) for entry in allowed}) == len(allowed)


def test_the_rules_see_the_whole_project() -> None:
    names = {module.name for module in modules("src")}

    assert {"hermes", "hermes.messages", "hermes.hermes_cli", "hermes.aliases"} <= names
    assert {"pyproject.toml", "scripts/check", ".ci/run", "README.md"} <= set(project_files())


def lines(count: int, indent: str = "") -> str:
    return f"{indent}x = 1\n" * count


BROKEN = {
    "module-length": (size.module_length, lines(401)),
    "function-length": (size.function_length, "def f():\n" + lines(50, "    ")),
    "nesting": (
        size.nesting,
        "def f(a):\n for b in a:\n  if b:\n   with b:\n    try:\n     while b: pass\n"
        "    finally: pass",
    ),
    "parameters": (size.parameters, "class C:\n def f(self, a, b, c, d, /, e, f, *, g, h): pass"),
    "methods": (
        size.methods,
        "class C:\n" + "".join(f" def m{n}(self): pass\n" for n in range(16)),
    ),
    "module-docstring": (conduct.module_docstring, '"""To be described by its owner."""'),
    "public-docstring": (conduct.public_docstring, "class C:\n 'x'\n def m(self): pass"),
    "broad-except": (
        conduct.broad_except,
        "try: f()\nexcept (OSError, Exception): log(exc_info=1)",
    ),
    "silent-except": (conduct.silent_except, "try: f()\nexcept: raise ValueError from None"),
    "no-print": (conduct.no_print, "def f(): print(1)"),
    "no-environment": (conduct.no_environment, "import os\nkey = os.environ['KEY']"),
    "no-bare-task": (conduct.no_bare_task, "task = asyncio.get_running_loop().create_task(f())"),
    "no-loose-dict": (conduct.no_loose_dict, "def f(options: dict[str, Any]): pass"),
    "has-layer": (has_layer, "x = 1"),
}
KEPT = {
    "module-length": lines(400),
    "function-length": "def f():\n" + lines(49, "    "),
    "nesting": (
        "def f(a):\n for b in a:\n  if b:\n   with b:\n    if b: pass\n    elif a: pass\n"
        "    else: pass\n  elif a:\n   def g():\n    if b:\n     if b: pass"
    ),
    "parameters": "class C:\n def f(self, a, b, c, d, /, e, f, *more, g, **rest): pass",
    "methods": "class C:\n" + " @overload\n def m(self): pass\n" * 16,
    "module-docstring": '"""Sessions and who writes next."""',
    "public-docstring": (
        "class C:\n 'x'\n def _m(self): pass\n @typing.override\n def o(self): pass\n"
        "def f():\n 'x'\n def g(): pass\nclass _D:\n def m(self): pass"
    ),
    "broad-except": "try: f()\nexcept OSError: pass\nexcept BaseException:\n close()\n raise",
    "silent-except": (
        "try: f()\nexcept Exception: log.exception('x')\nexcept: log.error('', exc_info=e)"
    ),
    "no-print": "def f(): console.print(1)",
    "no-environment": "import os\ndef f(self): return os.path, self.environ",
    "no-bare-task": "group.create_task(f())",
    "no-loose-dict": "def f(a: dict[str, str], b: Mapping[str, Any]): pass\ndef _g(a: dict): pass",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_finds_its_breach_once(name: str) -> None:
    rule, text = BROKEN[name]

    found = list(rule(parse("src/hermes/sample.py", text)))

    assert [finding.rule for finding in found] == [name]


@pytest.mark.parametrize("name", KEPT)
def test_a_rule_accepts_what_is_right(name: str) -> None:
    rule, _ = BROKEN[name]

    assert not list(rule(parse("src/hermes/sample.py", KEPT[name])))


@pytest.mark.parametrize(
    ("rule", "bad", "good", "text"),
    [
        (conduct.module_name, "src/hermes/utils/x.py", "src/hermes/x.py", ""),
        (conduct.no_print, "src/hermes/agent/x.py", "src/hermes/hermes_cli/x.py", "print(1)"),
        (
            conduct.no_environment,
            "src/hermes/hermes_cli/auth.py",
            "src/hermes/hermes_cli/config.py",
            "from os import environ",
        ),
        (
            conduct.no_loose_dict,
            "src/hermes/tools/x.py",
            "src/hermes/wire/x.py",
            "def f(a: dict): pass",
        ),
        (
            conduct.bare_package,
            "src/hermes/gateway/__init__.py",
            "src/hermes/gateway/config.py",
            "import os",
        ),
        (has_layer, "src/hermes/agents.py", "src/hermes/agent/turn.py", ""),
    ],
)
def test_a_rule_on_places_knows_them(rule: Rule, bad: str, good: str, text: str) -> None:
    assert len(list(rule(parse(bad, text)))) == 1
    assert not list(rule(parse(good, text)))


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (texts.registry_host, "see files.py" + "thonhosted.org/x", "see the package registry"),
        (texts.workplace_path, "cd /ro" + "ot/project", "cd project; ls /usr/lib"),
        (
            texts.workplace_path,
            "cat .." + "/shared/x",
            "cat shared/x; https://example.com/home/a/b",
        ),
    ],
)
def test_a_rule_on_texts_finds_its_breach(rule: object, bad: str, good: str) -> None:
    assert callable(rule)
    assert len(list(rule("README.md", bad))) == 1
    assert not list(rule("README.md", good))


def test_an_exception_covers_one_rule_at_one_place() -> None:
    found = [Finding(rule="nesting", where="a.py::f", detail="line 3")]
    other = exceptions.Allowed(rule="nesting", where="a.py::g", reason="is as deep as its data")
    right = exceptions.Allowed(rule="nesting", where="a.py::f", reason="is as deep as its data")

    assert exceptions.not_allowed(found, [other]) == found
    assert exceptions.not_needed(found, [other, right]) == [other]
    assert exceptions.not_allowed(found, [right]) == []


def test_a_finding_names_its_function_and_not_its_line() -> None:
    text = "class C:\n    def f(self):\n        for a in b:\n            print(a)\n"

    found = list(conduct.no_print(parse("src/hermes/x.py", text)))

    assert [finding.where for finding in found] == ["src/hermes/x.py::C.f"]
