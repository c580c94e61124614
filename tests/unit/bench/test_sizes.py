"""The size of a run of benchmarks."""

import pytest

from tests.bench.sizes import SIZES, check


@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_exists_is_taken(size: str) -> None:
    check(size)


def test_a_size_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(pytest.UsageError, match=r"'tiny'.*full, smallest"):
        check("tiny")
