"""Runs the migrations over the connection that ``upgrade`` hands over, in its transaction.

It has no offline mode and opens no database of its own.
"""

from alembic import context

from hermes.sessions.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
