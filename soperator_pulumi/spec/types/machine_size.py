"""Placeholders for the size of a node: `all` or `all but 2` of what a machine has for its pod.

A spec has numbers, so that the same description always gives the same cluster. A preflight writes them into the file of
a stack (`stack/written_sizes.py`).
"""

import re

from pydantic import BeforeValidator

from soperator_pulumi.spec.validation.base import refused

PLACEHOLDER = re.compile(r"all(?: but (\d{1,7}(?:\.\d{1,3})?))?")
"""Form of a placeholder. The group is what is left to others on the machine."""


def kept_back(value: object) -> float | None:
    """Return what a placeholder leaves to others on the machine, 0 for `all`; None for any other value."""
    found = PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else float(found[1] or 0)


def _refuse_placeholder(value: object) -> object:
    if kept_back(value) is not None:
        raise refused(
            "which only the machines tell. Run `soperator preflight FILE --write-sizes`: it writes the number into the "
            "file of the stack. In a program, give the number itself."
        )
    return value


NUMBER_OF_MACHINE = BeforeValidator(_refuse_placeholder)
"""Annotation for a number in whose place the file of a stack may have a placeholder, until it is written."""
