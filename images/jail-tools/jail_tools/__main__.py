"""The commands of the jail: `python3 -m jail_tools <command>`."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn, Protocol

from jail_tools import admin, collect
from jail_tools.commands import install, populate, switch, trees, users, verify
from jail_tools.errors import EXIT_REFUSED, EXIT_TRY_AGAIN, MESSAGE_BYTES, JailError, encoded, reason

TERMINATION_LOG = Path("/dev/termination-log")
"""Kubernetes' place for a container's last words. It is there in pods alone."""


class Command(Protocol):
    """A module that is a command. The first line of its docstring is its help."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command line."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do the command and return its exit code. A JailError is told in words."""


COMMANDS: dict[str, Command] = {
    "install": install,
    "populate": populate,
    "verify": verify,
    "users": users,
    "switch": switch,
    "trees": trees,
    "collect": collect,
    "admin": admin,
}


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors are refusals: the same command line never becomes right."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end."""
        raise SystemExit(tell(f"{self.prog}: {message}", EXIT_REFUSED))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    whole = Parser(prog="jail_tools", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        line = (command.__doc__ or "").splitlines()[0]
        command.add_arguments(commands.add_parser(name, help=line, description=line))
    return whole


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code: 0, 1 (to be tried again) or 78 (refused)."""
    parsed = parser().parse_args(arguments)
    try:
        return COMMANDS[parsed.command].run(parsed)
    except JailError as error:
        return tell(f"{parsed.command}: {error}", error.exit_code)
    except OSError as error:
        where = error.filename if error.filename is not None else "an open file"
        return tell(f"{parsed.command}: {os.fsdecode(where)}: {reason(error)}", EXIT_TRY_AGAIN)


def tell(message: str, exit_code: int) -> int:
    """Say last words on standard error and, in a pod, where the kubelet reads them; return the exit code."""
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
