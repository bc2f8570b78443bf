"""``python -m hermes`` and the ``hermes`` command.

The program itself is ``hermes.hermes_cli.main``.
"""

import sys

from hermes.hermes_cli.main import run


def main() -> None:
    """Run the program with the command line's arguments and end the process."""
    sys.exit(run())


if __name__ == "__main__":
    main()
