"""The command ``maitred``."""

import sys

from maitred._engine import main as _engine_main


def main() -> int:
    """Runs the command with the arguments of the process and returns its exit code."""
    return _engine_main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
