"""Old import names (``agent``, ``gateway``, ``tools``, ...) for the modules of ``hermes``.

For tests and plugins written against those names; the product itself neither imports nor installs
this module. It makes no copies: a module reached by both names is one object.
"""

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "agent": "hermes.agent",
        "gateway": "hermes.gateway",
        "hermes_cli": "hermes.hermes_cli",
        "hermes_llm": "hermes.voice.hermes_llm",
        "hermes_state": "hermes.hermes_state",
        "run_agent": "hermes.run_agent",
        "tools": "hermes.tools",
        "toolsets": "hermes.toolsets",
    }
)
"""Old top-level name to real module; what lies below the old name lies below the real one."""


def install() -> None:
    """Make the old names importable; does nothing the second time.

    An old name that is already imported from elsewhere stays what it is, with all below it, and an
    old name whose real module does not exist is looked up as if nothing were installed.
    """
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Take the old names back, those already imported too; the real modules stay."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for name, module in list(sys.modules.items()):
        real = real_name(name)
        if real and module is sys.modules.get(real):
            del sys.modules[name]


def real_name(name: str) -> str | None:
    """Return the real dotted name behind an old one, or None when ``name`` is no old name."""
    top, dot, rest = name.partition(".")
    real = NAMES.get(top)
    return None if real is None else f"{real}{dot}{rest}"


class _AliasFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        real = real_name(fullname)
        if real is None or not _parent_is_ours(fullname) or not _exists(real):
            return None
        return ModuleSpec(fullname, _AliasLoader(real))


class _AliasLoader(Loader):
    """Hands out the real module; the import system sets ``__spec__``, which is then put back."""

    def __init__(self, real: str) -> None:
        self._real = real
        self._real_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._real)
        self._real_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._real_spec


def _parent_is_ours(fullname: str) -> bool:
    parent = fullname.rpartition(".")[0]
    if not parent:
        return True
    return sys.modules.get(parent) is sys.modules.get(real_name(parent) or "")


def _exists(real: str) -> bool:
    if real in sys.modules:
        return True
    try:
        return importlib.util.find_spec(real) is not None
    except ModuleNotFoundError as error:
        if error.name and f"{real}.".startswith(f"{error.name}."):
            return False  # a package on the way to it does not exist
        raise


_FINDER = _AliasFinder()
