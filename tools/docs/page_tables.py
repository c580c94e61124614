"""Tables that `make docs` writes into pages, between two comments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_TABLE = re.compile(r"(?s)(<!-- (?P<name>[a-z ]+): written by `make docs` -->\n).*?(<!-- end -->)")


def with_tables(page: Path, tables: Mapping[str, str]) -> str:
    """Return the text of a page with these tables, by the names in the comments above them.

    Raises:
        KeyError: the page has a comment for another table.
    """
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found['name']]}\n{found[3]}", page.read_text())


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    cells = [heads, *rows]
    lines = [f"| {' | '.join(row)} |\n" for row in cells]
    return "".join([lines[0], f"|{'---|' * len(heads)}\n", *lines[1:]])
