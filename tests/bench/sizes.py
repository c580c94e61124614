"""Sizes of benchmarks: full ones measure, the smallest ones show in moments that a benchmark still works."""

import os

import pytest

SIZES = ("full", "smallest")
SIZE = os.environ.get("BENCH_SIZE", SIZES[0])
"""Size of this run, by BENCH_SIZE. Default: full."""


def size(full: int, smallest: int) -> int:
    """Return the number that counts in this run: of rounds, of nodes, of seconds."""
    return smallest if SIZE == "smallest" else full


def check(chosen: str = SIZE) -> None:
    """Refuse a size that does not exist.

    Raises:
        pytest.UsageError: The message names the sizes.
    """
    if chosen not in SIZES:
        raise pytest.UsageError(f"BENCH_SIZE is {chosen!r}. Allowed: {', '.join(SIZES)}. Default: {SIZES[0]}.")
