"""The agent: turns, steps and what bounds them.

Nothing here knows HTTP, a terminal or where settings come from.
"""
