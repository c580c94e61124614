"""Lines that this process has shown, as a refresh and the following diff find the same about a resource."""

from collections.abc import Iterable

from soperator_pulumi.operations.progress import report

SHOWN: set[tuple[str, str]] = set()
"""Pairs of a resource's id and a line about it."""


def show_once(id_: str, lines: Iterable[str]) -> None:
    """Report the lines about a resource that were not reported earlier in this run."""
    for line in lines:
        if (id_, line) not in SHOWN:
            SHOWN.add((id_, line))
            report(line)
