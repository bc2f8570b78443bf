"""The processes that a test starts, told apart from those that were there before."""

from collections.abc import Callable
from typing import TypeAlias

import psutil

Children: TypeAlias = Callable[[], list[psutil.Process]]


def new_children() -> Children:
    """Return a function that lists the living processes started from now on, and theirs.

    A database or a program that another test keeps running is none of them.
    """
    known = set(psutil.Process().children())

    def started() -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for child in set(psutil.Process().children()) - known:
            try:
                family = [child, *child.children(recursive=True)]
                found += [p for p in family if p.status() != psutil.STATUS_ZOMBIE]
            except psutil.NoSuchProcess:
                continue
        return found

    return started
