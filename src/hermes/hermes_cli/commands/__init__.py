"""The subcommands of ``hermes``, one module each; ``main`` loads the one that is asked for."""
