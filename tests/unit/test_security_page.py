"""docs/security.md names the tests that show what it promises: they exist."""

import re

from tools import paths

PAGE = (paths.ROOT / "docs" / "security.md").read_text()
CLUSTER = paths.ROOT / "tests" / "cluster"


def test_every_test_that_is_named_is_there() -> None:
    tests = "".join(path.read_text() for path in CLUSTER.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", PAGE))

    assert named
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_every_file_of_attempts_is_named_and_there() -> None:
    named = set(re.findall(r"`([a-z]+\.py)`", PAGE))

    assert named == {path.name for path in (CLUSTER / "attempts").glob("[a-z]*.py")}
