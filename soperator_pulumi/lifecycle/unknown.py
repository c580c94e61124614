"""Values that are not known yet: a preview has them in place of what other resources will say."""

from collections.abc import Mapping

from pulumi.output import Unknown
from pulumi.runtime.rpc import UNKNOWN


def has_unknown(value: object) -> bool:
    """Whether a value holds something that is not known yet, as in a preview: an object, or a text in its place."""
    if isinstance(value, Mapping):
        return any(has_unknown(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_unknown(each) for each in value)
    return isinstance(value, Unknown) or (isinstance(value, str) and value == UNKNOWN)
