"""Names of this project's tests, for pages and tables that name some."""

import re
from functools import cache

from tools import paths


@cache
def defined_tests() -> frozenset[str]:
    """Return the names of all test functions."""
    folders = [paths.ROOT / "tests", *(paths.ROOT / "images").glob("*/tests")]
    sources = (path.read_text() for folder in folders for path in folder.rglob("test_*.py"))
    return frozenset(name for source in sources for name in re.findall(r"(?m)^def (test_\w+)\(", source))
