"""Descriptions over defaults, as in a stack's configuration."""

from collections.abc import Mapping


def merged(defaults: object, own: object) -> object:
    """Return `own` over `defaults`: mappings are merged key by key, and null removes a key. All else wins whole."""
    if not isinstance(own, Mapping):
        return own
    base = defaults if isinstance(defaults, Mapping) else {}
    both = {**base, **{key: merged(base.get(key), value) for key, value in own.items()}}
    return {key: value for key, value in both.items() if value is not None}
