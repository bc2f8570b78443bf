"""The wire formats of model endpoints: their JSON to our types and back.

Nothing here does I/O or knows a provider by name.
"""
