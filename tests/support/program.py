"""The real program, run as people run it."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import hermes

SOURCE = Path(hermes.__file__).parents[1]

LIMIT = 30.0
"""Seconds that a run of the program may take on a busy machine."""

Program: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
