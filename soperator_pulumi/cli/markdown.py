"""Markdown for text that others wrote: in a block or a code span, it cannot become a link, a mention or HTML."""

import re
from collections.abc import Iterable

from soperator_pulumi.wording import printable

LONGEST_PAGE = 250_000
"""Characters, of four bytes at most: the summary of a job on GitHub takes 1 MiB
(https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary)."""


def block(lines: Iterable[str], language: str = "text") -> str:
    """Return lines as a block with a fence that is longer than any in them."""
    text = "\n".join(printable(line, keep="\t") for text in lines for line in text.split("\n"))
    fence = "`" * max(4, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def code(text: str) -> str:
    """Return a text as a code span, for the cell of a table."""
    line = printable(text, keep="\t").replace("|", "\\|")
    mark = "`" * (_longest_run(line) + 1)
    room = " " if "`" in line else ""
    return f"{mark}{room}{line}{room}{mark}"


def short(page: str, longest: int = LONGEST_PAGE) -> str:
    """Return a page. If it is too long, it is cut after a whole line, with a note after the cut block."""
    if len(page) <= longest:
        return page
    kept = page[:longest].rpartition("\n")[0]
    fence = ""
    for line in kept.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif found := re.match(r"`{4,}(?=\w+$)", line):
            fence = found[0]
    end = f"\n{fence}" if fence else ""
    return f"{kept}{end}\n\nThe rest is left out: a page has {longest} characters at most."


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
