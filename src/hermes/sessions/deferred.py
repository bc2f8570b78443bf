"""A store that is opened later: usable at once, each operation waits until it is there.

It lets a server listen before the SQL code is loaded and the database opened.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from hermes.sessions.store import SessionStore


class DeferredStore:
    """Stands in for the ``SessionStore`` that ``opening`` opens, at the first need of it."""

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, SessionStore]]) -> None:
        self._open = opening
        self._opening: asyncio.Task[SessionStore] | None = None

    async def opened(self) -> SessionStore:
        """Open the store, once, and return it.

        Raises:
            ConfigError, SessionError: it cannot be opened.
        """
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._opening)

    async def aclose(self) -> None:
        """Close the store where it is open or about to be."""
        opening = self._opening
        if opening is None:
            return
        await asyncio.wait({opening})
        if not opening.cancelled() and opening.exception() is None:
            await opening.result().aclose()

    def __getattr__(self, name: str) -> Any:
        # Every other operation of the port is a coroutine function, whichever they are.
        async def operation(*arguments: Any, **keywords: Any) -> Any:
            return await getattr(await self.opened(), name)(*arguments, **keywords)

        return operation


def deferred(opening: Callable[[], Coroutine[Any, Any, SessionStore]]) -> SessionStore:
    """Return a store that ``opening`` opens when it is first needed."""
    return cast("SessionStore", DeferredStore(opening))


async def opened(store: SessionStore) -> SessionStore:
    """Return the store behind ``store``, waiting for it where it is deferred; raises as that."""
    return await store.opened() if isinstance(store, DeferredStore) else store
