"""The surfaces that the gateway serves.

Nothing is registered here; the server composes what the settings enable.
"""
