"""The commands of the jail: `python3 -m jail_tools <command>`."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from jail_tools.commands import add_commands
from jail_tools.errors import EXIT_REFUSED, EXIT_TRY_AGAIN, MESSAGE_BYTES, CommandError, encoded, reason

TERMINATION_LOG = Path("/dev/termination-log")
"""File for a container's termination message, which the kubelet reads. It exists in pods only."""


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors are refusals: a retry would fail the same way."""

    def error(self, message: str) -> NoReturn:
        """Report the error and exit."""
        raise SystemExit(failed(f"{self.prog}: {message}", EXIT_REFUSED))


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code: 0, 1 (retry) or 78 (refused)."""
    parser = Parser(prog="jail_tools", description=__doc__)
    add_commands(parser)
    parsed = parser.parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except CommandError as error:
        return failed(f"{parsed.command}: {error}", error.exit_code)
    except OSError as error:
        where = error.filename if error.filename is not None else "an open file"
        return failed(f"{parsed.command}: {os.fsdecode(where)}: {reason(error)}", EXIT_TRY_AGAIN)


def failed(message: str, exit_code: int) -> int:
    """Write a message to standard error and, in a pod, to the file that the kubelet reads; return the exit code."""
    words = encoded(message)
    sys.stderr.buffer.write(words + b"\n")
    sys.stderr.buffer.flush()
    try:
        with TERMINATION_LOG.open("r+b") as log:
            log.write(words[:MESSAGE_BYTES])
    except OSError:
        return exit_code  # outside of a pod there is none
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
