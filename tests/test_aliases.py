"""Old and new import names reach one module, whichever comes first."""

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"


def run_python(code: str, *extra_paths: Path) -> str:
    """Run ``code`` in a fresh interpreter that has ``extra_paths`` in front of the source."""
    paths = [str(path) for path in (*extra_paths, SOURCE)]
    program = f"import sys; sys.path[:0] = {paths!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("old", "real"),
    [
        ("tools.base", "hermes.tools.base"),
        ("hermes_state", "hermes.hermes_state"),
        ("gateway.platforms", "hermes.gateway.platforms"),
    ],
)
@pytest.mark.parametrize("old_first", [True, False])
def test_both_names_in_either_order_give_one_module(old: str, real: str, old_first: bool) -> None:
    order = (old, real) if old_first else (real, old)
    code = f"""
import importlib
from hermes import aliases
aliases.install()
first, second = map(importlib.import_module, {order!r})
print(first is second, first.__name__, first.__spec__.name, sys.modules[{old!r}] is first)
"""
    assert run_python(code) == f"True {real} {real} True"


def test_the_attribute_of_the_parent_is_the_same_module() -> None:
    code = """
from hermes import aliases
aliases.install()
import tools.base
from tools import base
import hermes.tools.base
print(tools is hermes.tools, base is hermes.tools.base, tools.base is base)
"""
    assert run_python(code) == "True True True"


def test_classes_reached_by_either_name_are_the_same() -> None:
    code = """
from hermes import aliases
aliases.install()
from tools.base import ToolContext as old
from hermes.tools.base import ToolContext as new
print(old is new, new.__module__)
"""
    assert run_python(code) == "True hermes.tools.base"


def test_reload_by_the_old_name_runs_the_real_module_again() -> None:
    code = """
import importlib
from hermes import aliases
aliases.install()
import tools.base
before = tools.base.ToolContext
again = importlib.reload(tools.base)
print(again is sys.modules["hermes.tools.base"] is sys.modules["tools.base"])
print(again.ToolContext is before, again.__spec__.name)
"""
    assert run_python(code) == "True\nFalse hermes.tools.base"


def test_a_module_that_imports_itself_by_its_old_name_gets_itself(tmp_path: Path) -> None:
    package = tmp_path / "hermes_plugin"
    package.mkdir()
    (package / "loop.py").write_text("import tools.loop as me\nvalue = 1\n")
    code = f"""
from hermes import aliases
import hermes.tools
hermes.tools.__path__.append({str(package)!r})
aliases.install()
import tools.loop
print(tools.loop.me is sys.modules["hermes.tools.loop"], tools.loop.__spec__.name)
"""
    assert run_python(code) == "True hermes.tools.loop"


def test_a_missing_module_is_an_import_error_under_the_name_asked_for() -> None:
    code = """
from hermes import aliases
aliases.install()
for name in ("tools.no_such", "hermes_state.no_such", "no_such_top"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error.name)
"""
    assert run_python(code).split() == ["tools.no_such", "hermes_state.no_such", "no_such_top"]


def test_an_installed_package_serves_a_name_that_the_product_lacks(tmp_path: Path) -> None:
    (tmp_path / "hermes_llm.py").write_text("origin = 'installed'\n")
    code = """
from hermes import aliases
aliases.NAMES = {"hermes_llm": "hermes.no_such.hermes_llm"}
aliases.install()
import hermes_llm
print(hermes_llm.origin)
"""
    assert run_python(code, tmp_path) == "installed"


def test_the_product_serves_a_name_that_an_installed_package_has_too(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("origin = 'installed'\n")
    code = """
from hermes import aliases
aliases.install()
import tools
print(tools.__name__)
"""
    assert run_python(code, tmp_path) == "hermes.tools"


def test_a_foreign_package_imported_before_keeps_its_submodules(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("")
    (tmp_path / "tools" / "base.py").write_text("origin = 'installed'\n")
    code = """
from hermes import aliases
import tools
aliases.install()
import tools.base
print(tools.base.origin)
"""
    assert run_python(code, tmp_path) == "installed"


def test_an_import_that_fails_inside_names_what_is_missing_and_can_be_tried_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "half.py").write_text("import no_such_dependency\n")
    code = f"""
from hermes import aliases
import hermes.tools
hermes.tools.__path__.append({str(tmp_path)!r})
aliases.install()
for _ in range(2):
    try:
        import tools.half
    except ModuleNotFoundError as error:
        print(error.name, "tools.half" in sys.modules)
"""
    assert run_python(code) == "no_such_dependency False\nno_such_dependency False"


def test_without_install_the_old_names_do_not_exist() -> None:
    code = """
import hermes.aliases
try:
    import hermes_state
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run_python(code) == "hermes_state"


def test_installing_twice_and_uninstalling_once_leaves_no_trace() -> None:
    code = """
from hermes import aliases
before = list(sys.meta_path)
aliases.install()
aliases.install()
import tools.base
aliases.uninstall()
print(sys.meta_path == before, [name for name in sys.modules if aliases.real_name(name)])
print("hermes.tools.base" in sys.modules)
try:
    import tools
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run_python(code) == "True []\nTrue\ntools"


@pytest.fixture
def _old_names() -> object:
    from hermes import aliases

    aliases.install()
    yield
    aliases.uninstall()


@pytest.mark.usefixtures("_old_names")
def test_a_patch_by_the_old_dotted_name_reaches_the_real_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import hermes.tools.base as real

    monkeypatch.setattr("tools.base.ToolContext", "patched")

    assert real.ToolContext == "patched"
