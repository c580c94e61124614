"""Three-way comparison of a release with new inputs, path by path, as pulumi-kubernetes does it."""

from collections.abc import Iterator, Mapping

from pulumi.provider.experimental import provider as api

from tools.engine import property_paths
from tools.engine.property_paths import Path
from tools.engine.values import UNKNOWN

_REPLACING = {("name",), ("namespace",)}
_MISSING = object()


def compare(
    live: Mapping[str, object], old: Mapping[str, object], new: Mapping[str, object]
) -> dict[str, api.PropertyDiff]:
    """Return the paths at which the new inputs differ, with the kinds of change.

    A new input is compared with the live value, so that a change by hand is found after a refresh; an input that has
    gone is one that the old inputs have.
    """
    return {
        property_paths.text(path): api.PropertyDiff(_kind(path, word), input_diff=word == "DELETE")
        for path, word in _changes((), live, old, new)
    }


def _changes(path: Path, live: object, old: object, new: object) -> Iterator[tuple[Path, str]]:
    if new is UNKNOWN:
        yield path, "ADD" if live is _MISSING else "UPDATE"
    elif new is _MISSING:
        if old is not _MISSING:
            yield path, "DELETE"
    elif live is _MISSING:
        yield path, "ADD"
    elif isinstance(live, Mapping) and isinstance(new, Mapping):
        before = old if isinstance(old, Mapping) else {}
        for key in [*new, *(key for key in before if key not in new)]:
            yield from _changes(
                (*path, key), live.get(key, _MISSING), before.get(key, _MISSING), new.get(key, _MISSING)
            )
    elif isinstance(live, list) and isinstance(new, list):
        for index in range(max(len(live), len(new))):
            after, now = _item(new, index), _item(live, index)
            yield from _changes((*path, index), now, now if after is _MISSING else _item(old, index), after)
    elif live != new:
        yield path, "UPDATE"


def _item(items: object, index: int) -> object:
    return items[index] if isinstance(items, list) and index < len(items) else _MISSING


def _kind(path: Path, word: str) -> api.PropertyDiffKind:
    return api.PropertyDiffKind[f"{word}_REPLACE" if path in _REPLACING else word]
