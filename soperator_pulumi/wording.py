"""Counts, lists, and sentences in messages."""

from collections.abc import Iterable


def counted(count: int, thing: str) -> str:
    """Return a count with its noun: `1 node`, `4 nodes`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def listed(parts: Iterable[str], most: int) -> str:
    """Return the first `most` parts, and how many others there are."""
    every = list(parts)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def with_final_stop(text: str) -> str:
    """Return a text that ends as a sentence: with a full stop, unless it ends with a stop of its own."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
