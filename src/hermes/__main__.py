"""``python -m hermes`` and the ``hermes`` command.

The program itself is ``hermes.hermes_cli.main``.
"""

import gc
import sys


def main() -> None:
    """Run the program with the command line's arguments and end the process."""
    # Loading modules makes hardly any garbage, and looking for it takes a quarter of the start.
    # The command that is run switches the collector on again.
    gc.disable()
    from hermes.hermes_cli.main import run

    sys.exit(run())


if __name__ == "__main__":
    main()
