"""The chain of schema versions, run by alembic; ``env`` and ``versions`` are its fixed names.

Not imported by the program: ``upgrade`` points alembic here when a database is behind.
"""
