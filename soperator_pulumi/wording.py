"""Wording of messages: counts, lists, sentences, suggestions, and text of others that is safe to print."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches


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


def printable(text: str, keep: str = "") -> str:
    """Return a text with "?" for characters that a terminal does not show: none moves the cursor or starts a line.

    Args:
        text: The text.
        keep: Characters that stay although a terminal does not show them. Default: none.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character in keep else "?" for character in text)


def did_you_mean(name: str, known: Collection[str], otherwise: str) -> str:
    """Return the next step after a wrong name: the most similar known name, or else the given sentence."""
    near = get_close_matches(name, known, n=1)
    return f'Did you mean "{near[0]}"?' if near else otherwise
