"""Navigation of the site, from the README's table of pages, so that both have the same list."""

import re
from collections.abc import Sequence

_ROW = re.compile(r"(?m)^\| (?P<reader>[^|\n]+) \| (?P<pages>\[[^|\n]+) \|$")
_PAGE = re.compile(r"\[(?P<title>[^]]+)\]\((?P<path>[\w./-]+)\.md\)")


def by_reader(readme: str) -> str:
    """Return the README with a tree of its pages for every kind of reader."""
    trees = []
    for row in _ROW.finditer(readme):
        pages = [f"{_capitalized(page['title'])} <{page['path']}>" for page in _PAGE.finditer(row["pages"])]
        trees.append(tree(pages, caption=_capitalized(row["reader"])))
    return "".join([readme, *trees])


def tree(pages: Sequence[str], *, caption: str = "", glob: bool = False) -> str:
    """Return the directive that adds pages to the navigation, without showing anything on the page itself."""
    options = [":hidden:", *([f":caption: {caption}"] if caption else []), *([":glob:"] if glob else [])]
    return "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])


def _capitalized(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
