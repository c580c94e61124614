"""Full numbers: `make soak` repeats kills, rounds and random examples more often than other runs of the same tests."""

import os

SOAK = bool(os.environ.get("SOAK"))
"""Set for `make soak`, by SOAK=1. Tests marked `soak` run with it alone."""


def times(quick: int, full: int) -> int:
    """Return the number that counts in this run, of repetitions or of seconds: `full` in `make soak`, else `quick`."""
    return full if SOAK else quick
