"""``python -m hermes`` and the ``hermes`` command."""

import sys


def main() -> None:
    """Run the program with the process's arguments and leave with its exit code."""
    from hermes.hermes_cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
