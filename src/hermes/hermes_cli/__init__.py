"""What the operator sets, and the program that the operator runs.

The settings modules stand below the agent; ``main`` and ``commands`` stand above everything.
"""
