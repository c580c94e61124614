"""The README and the pages of docs/ lead where they say, and explain messages that are printed."""

import re
from pathlib import Path

import pytest

from tools import paths

PAGES = [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").glob("*.md"))]


def anchors(page: Path) -> set[str]:
    """Return the names by which the headings of a page are linked to."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(docs/([^)#]+)", PAGES[0].read_text()))
    by_others = {name for page in PAGES[1:] for name in re.findall(r"\]\((\w[\w-]*\.md)", page.read_text())}
    assert {page.name for page in PAGES[1:]} <= linked | by_others


def test_every_message_that_the_next_day_explains_is_one() -> None:
    """Each phrase between the parts that vary stands in the source."""
    sources = [paths.ROOT / folder for folder in ("soperator_pulumi", "tools")]
    said = "".join(path.read_text() for source in sources for path in source.rglob("*.py"))
    spoken = re.sub(r'"\s*\n\s*f?"', "", said)
    table = (paths.ROOT / "docs" / "operations.md").read_text().split("## When something is wrong", 1)[1]
    rows = [row.partition(" | ")[0] for row in re.findall(r"(?m)^\| (.*) \|$", table)]
    messages = [
        message for row in rows if not row.startswith("ssh: `Permission") for message in re.findall(r"`(.+?)`", row)
    ]

    assert len(messages) > 8
    for message in messages:
        for phrase in filter(None, (part.strip(" ,.") for part in message.split("..."))):
            assert phrase in spoken, phrase


def test_every_file_that_the_architecture_names_is_there() -> None:
    page = (paths.ROOT / "docs" / "architecture.md").read_text()
    names = {name for name in re.findall(r"`([\w./-]+(?:\.py|\.h|/))`", page) if not name.startswith("/")}
    folders = [paths.ROOT, paths.ROOT / "soperator_pulumi", *(paths.ROOT / "soperator_pulumi").rglob("*/")]
    assert len(names) > 20
    assert {name for name in names if not any((folder / name).exists() for folder in folders)} == set()
