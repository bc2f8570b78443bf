"""What the local model needs of a computer, and what this one has.

Nothing is started here, and a fact that cannot be learned on a platform is taken as good.
"""

import ctypes
import importlib.util
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import LocalModelError
from hermes.providers.local_catalogue import CATALOGUE, Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts that decide whether the model can start; ``free_memory`` in bytes, if known."""

    has_runtime: bool
    has_openmp: bool
    has_avx2: bool
    free_memory: int | None


def read_machine() -> Machine:
    """Look at this computer; reads a few small files."""
    return Machine(
        has_runtime=importlib.util.find_spec("xllamacpp") is not None,
        has_openmp=_has_openmp(),
        has_avx2=_has_avx2(),
        free_memory=_free_memory(),
    )


def find_problem(machine: Machine, weights: Weights, file: Path | None) -> LocalModelError | None:
    """Return why ``weights`` cannot run here (their ``file`` may be missing), else ``None``."""
    if not machine.has_runtime:
        return LocalModelError(
            "The local model needs a package that is not installed: run"
            ' `pip install "hermes[local]"`.',
            code="runtime_missing",
        )
    if not machine.has_openmp:
        return LocalModelError(
            "The local model needs the system library libgomp.so.1: run"
            " `apt-get install libgomp1` (Debian, Ubuntu) or `dnf install libgomp` (Fedora).",
            code="library_missing",
        )
    if not machine.has_avx2:
        return LocalModelError(
            "The local model needs a processor with AVX2. Set a provider instead:"
            " `hermes config set OPENAI_API_KEY ...`.",
            code="cpu_unsupported",
        )
    short = _memory_problem(machine.free_memory, weights)
    if short is None and file is None:
        return LocalModelError(
            f"The local model is not here yet ({weights.size / 1e9:.1f} GB): run"
            f" `hermes models pull {weights.name}`.",
            code="weights_missing",
        )
    return short


def _memory_problem(free: int | None, weights: Weights) -> LocalModelError | None:
    if free is None or free >= weights.memory:
        return None
    smaller = [other.name for other in CATALOGUE.values() if other.memory <= free]
    advice = (
        f"Use the smaller {smaller[0]} (`hermes models pull {smaller[0]}`)"
        if smaller
        else "Close other programs or set a provider (`hermes config set OPENAI_API_KEY ...`)"
    )
    return LocalModelError(
        f"{weights.title} needs {weights.memory / 1e9:.1f} GB of free memory, {free / 1e9:.1f} GB"
        f" is free. {advice}.",
        code="memory_low",
    )


def _has_openmp() -> bool:
    """Only the Linux build leaves the library to the system."""
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        return False
    return True


def _has_avx2() -> bool:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return True
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return "avx2" in line.split()
    return True


def _free_memory() -> int | None:
    """The least of what the kernel and the control group leave."""
    if sys.platform != "linux":
        return None
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
            return min(free, _group_limit(Path("/sys/fs/cgroup"), free))
    return None


def _group_limit(group: Path, default: int) -> int:
    """What a version 2 control group still allows; its reclaimable cache counts as free."""
    try:
        limit = (group / "memory.max").read_text().strip()
        if limit == "max":
            return default
        used = int((group / "memory.current").read_text())
        cache = [
            int(line.split()[1])
            for line in (group / "memory.stat").read_text().splitlines()
            if line.startswith("inactive_file ")
        ]
    except (OSError, ValueError):
        return default
    return int(limit) - used + sum(cache)
