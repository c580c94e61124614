"""docs/security.md names the tests that show what it promises, by the numbers of its rows."""

import re

from tools import paths

PAGE = (paths.ROOT / "docs" / "security.md").read_text()
CLUSTER = paths.ROOT / "tests" / "cluster"

WITHOUT_A_TEST = {"L12", "L13"}
"""Limits that no test reaches."""


def test_every_promise_has_its_tests_and_no_other_row_has() -> None:
    promises, tests = PAGE.split("\n## Tests\n")
    numbers = re.findall(r"(?m)^\| ([A-Z]\d+) \|", promises) + re.findall(r"\(([A-Z]\d+)\)", promises)
    tested = re.findall(r"(?m)^\| ([A-Z]\d+) \| `", tests)

    assert {*numbers} == {*tested, *WITHOUT_A_TEST}
    assert len(tested) == len({*tested})


def test_every_file_of_attempts_is_named_and_there() -> None:
    named = set(re.findall(r"`([a-z]+\.py)`", PAGE))

    assert named == {path.name for path in (CLUSTER / "attempts").glob("[a-z]*.py")}
