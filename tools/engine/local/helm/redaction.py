"""Removal of secrets from errors: charts and the API server repeat values that they refuse."""

import base64
from collections.abc import Collection, Iterator, Mapping

from tools.engine.protocol import HIDDEN
from tools.engine.values import Plain, Properties, plain_map

_SHORTEST = 3
"""Fewest characters of a secret to look for: shorter ones occur in every text."""


def secret_texts(properties: Properties) -> set[str]:
    """Return the texts of properties that are marked as secret, plain and in base64."""
    found: set[str] = set()

    def collect(inner: Plain) -> Plain:
        found.update(_texts(inner))
        return inner

    plain_map(properties, collect)
    return found | {base64.b64encode(text.encode()).decode() for text in found}


def redacted(text: str, secrets: Collection[str]) -> str:
    """Return a text with the secrets in it replaced."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _texts(value: Plain) -> Iterator[str]:
    match value:
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str() if len(value) >= _SHORTEST:
            yield value
