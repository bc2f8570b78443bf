"""A store that is being opened: usable at once, each operation waits until it is there.

It lets a server listen while the SQL code loads and the database opens.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from hermes.sessions.store import SessionStore


class DeferredStore:
    """Stands in for the ``SessionStore`` that a coroutine opens."""

    def __init__(self, opening: Coroutine[Any, Any, SessionStore]) -> None:
        self._opening = asyncio.ensure_future(opening)

    async def opened(self) -> SessionStore:
        """Wait for the store itself.

        Raises:
            ConfigError, SessionError: it cannot be opened.
        """
        return await asyncio.shield(self._opening)

    async def aclose(self) -> None:
        """Close the store once it is open; one that could not be opened needs no closing."""
        await asyncio.wait({self._opening})
        if not self._opening.cancelled() and self._opening.exception() is None:
            await self._opening.result().aclose()

    def __getattr__(self, name: str) -> Any:
        # Every other operation of the port is a coroutine function, whichever they are.
        async def operation(*arguments: Any, **keywords: Any) -> Any:
            return await getattr(await self.opened(), name)(*arguments, **keywords)

        return operation


def deferred(opening: Coroutine[Any, Any, SessionStore]) -> SessionStore:
    """Return a store that waits for ``opening``."""
    return cast("SessionStore", DeferredStore(opening))


async def opened(store: SessionStore) -> SessionStore:
    """Return the store behind ``store``, waiting for it where it is deferred; raises as that."""
    return await store.opened() if isinstance(store, DeferredStore) else store
