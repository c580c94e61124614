"""Tables of GPU errors (Xid) for code that cannot import the checks: the page's table, and the alert's numbers."""

import runpy
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from tools import paths
from tools.docs.page_tables import table

FILE = paths.ROOT / "soperator_pulumi" / "monitoring" / "alerts" / "xid_codes.py"

_TABLE = paths.ROOT / "images" / "health" / "node_health" / "xids.py"

_MODULE = '''"""Errors of GPUs (Xid) that an alert is for: made by `make docs` of images/health/node_health/xids.py."""

DRAINING_XIDS = (
{codes})
"""Errors after which a GPU needs a reset, a reboot or a replacement, whatever the rest of their lines."""
'''


def text() -> str:
    """Return the module with the alert's numbers, updated from the table."""
    codes = [str(number) for number, error in _errors().items() if error.drains]
    return _MODULE.format(codes="".join(f"    {code},\n" for code in codes))


def error_table() -> str:
    """Return the table of the page: errors that need an action, by action, and a row for the others."""
    errors = _errors()
    rows = [
        (str(number), error.meaning, error.cause, error.action)
        for number, error in errors.items()
        if error.action != "none" and error.meaning != "unused"
    ]
    quiet = [number for number, error in errors.items() if error.action == "none"]
    quiet_row = (_ranges(quiet), "of programs, or without an effect", "program", "none")
    other = ("any other", "unused by the catalog", "any", "finding")
    return table(("Xid", "meaning", "cause", "action"), [*rows, quiet_row, other])


def _errors() -> Mapping[int, Any]:
    found: Mapping[int, Any] = runpy.run_path(str(_TABLE))["XIDS"]
    return dict(sorted(found.items()))


def _ranges(numbers: list[int]) -> str:
    grouped = groupby(enumerate(numbers), lambda placed: placed[1] - placed[0])
    runs = ([number for _, number in run] for _, run in grouped)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
