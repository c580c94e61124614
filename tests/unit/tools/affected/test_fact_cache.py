"""Facts of a file are read once, and again when the file has changed."""

from pathlib import Path

import pytest

from tools.affected import fact_cache
from tools.affected.fact_cache import facts_of_files
from tools.affected.python_facts import PythonFacts, facts_of
from tools.console import UserError


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts whose facts were read from them."""
    texts: list[str] = []

    def noting(text: str, *, by_definition: bool = False) -> PythonFacts:
        texts.append(text)
        return facts_of(text, by_definition=by_definition)

    monkeypatch.setattr(fact_cache, "facts_of", noting)
    return texts


def facts(root: Path, *files: str) -> dict[str, PythonFacts]:
    return facts_of_files(files, root=root, folder=root / "cache")


def test_facts_that_come_from_the_cache_are_those_of_the_file(tmp_path: Path, read: list[str]) -> None:
    (tmp_path / "a.py").write_text("from b import c\nf(ROOT / 'docs', 'x.y')\n")
    first = facts(tmp_path, "a.py")
    assert facts(tmp_path, "a.py") == first
    assert len(read) == 1


def test_a_changed_file_is_read_again_and_others_are_not(tmp_path: Path, read: list[str]) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"import {name[0]}1")
    facts(tmp_path, "a.py", "b.py")
    (tmp_path / "a.py").write_text("import a2")
    found = facts(tmp_path, "a.py", "b.py")
    assert [found[name].imports for name in ("a.py", "b.py")] == [{"a2": "a2"}, {"b1": "b1"}]
    assert read == ["import a1", "import b1", "import a2"]


def test_scripts_are_known_by_their_first_line(tmp_path: Path) -> None:
    (tmp_path / "check").write_text("#!/usr/bin/env python3\nimport a\n")
    (tmp_path / "start").write_text("#!/bin/sh\nexec sleep 1\n")
    (tmp_path / "data").write_bytes(b"\xff\xfe")
    (tmp_path / "page.md").write_text("#!/usr/bin/python\n")
    assert [*facts(tmp_path, "check", "start", "data", "page.md", "gone.py")] == ["check"]


def test_a_conftest_has_parts(tmp_path: Path) -> None:
    text = "def world(): ...\n"
    for name in ("conftest.py", "other.py"):
        (tmp_path / name).write_text(text)
    found = facts(tmp_path, "conftest.py", "other.py")
    assert [{*found[name].parts} for name in ("conftest.py", "other.py")] == [{"", "world"}, {""}]


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}'])
def test_a_damaged_cache_is_written_again(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "facts.json").write_text(content)
    assert facts(tmp_path, "a.py")["a.py"].imports == {"b": "b"}
    assert facts(tmp_path, "a.py")["a.py"].imports == {"b": "b"}


def test_the_cache_keeps_the_files_of_the_tree_alone(tmp_path: Path) -> None:
    for version in range(3):
        (tmp_path / "a.py").write_text(f"import b{version}\n")
        facts(tmp_path, "a.py")
    kept = (tmp_path / "cache" / "facts.json").read_text()
    assert kept.count('"b2"') == 3
    assert '"b1"' not in kept  # without quotes it may stand in a digest
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["facts.json"]


def test_a_file_that_is_not_python_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = (\n")
    with pytest.raises(UserError, match=r"^a.py:2: .* Fix it first"):
        facts(tmp_path, "a.py")


def test_others_are_not_read_again_because_one_file_is_not_python(tmp_path: Path, read: list[str]) -> None:
    for name, text in (("a.py", "import a1"), ("b.py", "import (")):
        (tmp_path / name).write_text(text)
    for _ in range(2):
        with pytest.raises(UserError):
            facts(tmp_path, "a.py", "b.py")
    assert read == ["import a1", "import (", "import ("]
