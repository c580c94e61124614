"""Suggestions after a wrong name."""

from collections.abc import Collection
from difflib import get_close_matches


def did_you_mean(name: str, known: Collection[str], otherwise: str) -> str:
    """Return the next step after a wrong name: the most similar known name, or else the given sentence."""
    near = get_close_matches(name, known, n=1)
    return f'Did you mean "{near[0]}"?' if near else otherwise
