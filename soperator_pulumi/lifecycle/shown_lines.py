"""Lines that looks of this process have shown: a refresh and the diff after it see the same of a resource."""

from collections.abc import Iterable

from soperator_pulumi.operations.progress import report

SHOWN: set[tuple[str, str]] = set()
"""Ids of resources, each with a line about the resource."""


def show_once(id_: str, lines: Iterable[str]) -> None:
    """Show the lines about a resource that no earlier look of this run has shown."""
    for line in lines:
        if (id_, line) not in SHOWN:
            SHOWN.add((id_, line))
            report(line)
