"""The command ``maitred``."""

import sys

from maitred._engine import bound_end as _bound_end
from maitred._engine import main as _engine_main


def main() -> int:
    """Runs the command with the arguments of the process and returns its exit code."""
    code = 1
    try:
        code = _engine_main(sys.argv, _command())
    finally:
        # Python's own end follows, which waits for threads and children of the application.
        _bound_end(code)
    return code


def _command() -> list[str]:
    """How this program was started, without its arguments: the interpreter with its options, and the script or ``-m maitred``."""
    own = len(sys.argv) - 1
    command = sys.orig_argv[: len(sys.orig_argv) - own]
    # What follows the interpreter has to be there: an embedding program may have set sys.argv to anything.
    if len(command) < 2 or sys.orig_argv[len(command) :] != sys.argv[1:]:
        return [sys.executable, "-m", "maitred"]
    # By path, as it was found.
    return [sys.executable, *command[1:]]


if __name__ == "__main__":
    sys.exit(main())
