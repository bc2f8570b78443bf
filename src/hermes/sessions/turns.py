"""One turn at a time per session, in the order of asking.

This holds within one process; between processes the store keeps turns whole and in sequence.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class SessionLocks:
    """A queue for each session that is in use; an idle session costs nothing.

    For one event loop. A waiter that is cancelled leaves the queue, the others keep their places.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def hold(self, session_id: str) -> AsyncGenerator[None]:
        """Wait for the session's turn and keep it; whoever gets it loads the history anew."""
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        self._users[session_id] = self._users.get(session_id, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[session_id] -= 1
            if not self._users[session_id]:
                del self._users[session_id], self._locks[session_id]

    def queued(self, session_id: str) -> int:
        """Return how many hold or wait for the session: 0 for an idle one."""
        return self._users.get(session_id, 0)

    def __len__(self) -> int:
        """Return how many sessions are in use."""
        return len(self._locks)
