"""The way to a session store that loads the database code only when it is needed.

It knows no settings; where the database is, the caller says.
"""

import asyncio
import importlib
from pathlib import Path

from hermes.sessions.store import SessionStore

DATABASE_NAME = "hermes.db"
"""The default database's file under HERMES_HOME; ``state.db`` there is another program's."""


async def open_store(url_or_path: str | Path) -> SessionStore:
    """Open a ``SqlSessionStore``, its code loaded off the event loop; raises as it does."""
    await asyncio.to_thread(importlib.import_module, "hermes.sessions.sql")
    from hermes.sessions.sql import SqlSessionStore

    return await SqlSessionStore.open(url_or_path)
