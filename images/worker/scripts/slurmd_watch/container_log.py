"""Lines in the container's log."""

import sys


def say(line: str) -> None:
    """Write a line to the container's log."""
    print(line, file=sys.stderr, flush=True)
