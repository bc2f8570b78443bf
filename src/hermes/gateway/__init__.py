"""The gateway: one process that serves the agent to clients.

The surfaces live in ``platforms``; this level holds how they are configured and composed.
"""
