"""The README and the pages of docs/ lead where they say, and explain messages that are printed."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.defined_tests import defined_tests
from tools import paths

README = paths.ROOT / "README.md"
CONTRIBUTING = paths.ROOT / "CONTRIBUTING.md"
ARCHITECTURE = paths.ROOT / "docs" / "architecture.md"
PAGES = [README, CONTRIBUTING, paths.ROOT / "CHANGELOG.md", *sorted((paths.ROOT / "docs").glob("*.md"))]


def test_every_test_that_a_page_names_is_there() -> None:
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text())}

    assert named - defined_tests() == set()
    assert len(named) > 10


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


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=lambda page: page.name)
def test_every_file_that_a_page_for_developers_names_is_there(page: Path) -> None:
    found = re.findall(r"`([\w./-]+(?:\.py|\.h|\.md|/))`", page.read_text())
    names = {name for name in found if not name.startswith("/")}
    folders = [paths.ROOT, paths.ROOT / "soperator_pulumi", *(paths.ROOT / "soperator_pulumi").rglob("*/")]
    assert len(names) > 20
    assert {name for name in names if not any((folder / name).exists() for folder in folders)} == set()


def test_every_command_for_developers_is_one() -> None:
    page = CONTRIBUTING.read_text()
    targets = set(re.findall(r"(?m)^([\w./]+):", (paths.ROOT / "Makefile").read_text()))
    commands = re.findall(r"(?m)^\.venv/bin/python -m (.*)$", page)

    assert set(re.findall(r"make ([a-z./]+)", page)) <= targets
    assert len(commands) >= 4
    for module, *arguments in map(str.split, commands):
        if module != "pytest":
            assert (paths.ROOT / f"{module.replace('.', '/')}.py").exists(), module
            continue
        tests = (paths.ROOT / arguments[0]).read_text()
        words = [word for option, word in pairwise(arguments) if option == "-k"]
        assert all(re.search(rf"def test_\w*{word}", tests) for word in words)


def test_every_name_in_capitals_that_a_recipe_points_to_is_in_the_sources() -> None:
    folders = [paths.ROOT / folder for folder in ("soperator_pulumi", "tools")]
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    names = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", CONTRIBUTING.read_text() + ARCHITECTURE.read_text()))

    assert len(names) >= 2
    assert {name for name in names if f"\n{name}" not in sources} == set()
