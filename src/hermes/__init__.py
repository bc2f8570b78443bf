"""Hermes: a self-hosted agent server.

The package holds no code of its own at this level: import the module that names what you need.
"""

__version__ = "0.1.0"
