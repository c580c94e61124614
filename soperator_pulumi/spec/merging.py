"""Merging of descriptions over defaults, as in a stack's configuration."""

from collections.abc import Mapping


def merged(defaults: object, own: object) -> object:
    """Return `own` over `defaults`: mappings merge by key, null removes a key, anything else in `own` replaces."""
    if not isinstance(own, Mapping):
        return own
    base = defaults if isinstance(defaults, Mapping) else {}
    both = {**base, **{key: merged(base.get(key), value) for key, value in own.items()}}
    return {key: value for key, value in both.items() if value is not None}
