"""One module a schema version, each frozen once released; nothing imports them but alembic."""
