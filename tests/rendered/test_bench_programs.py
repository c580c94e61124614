"""Programs that `make bench` times, deployed under mocks: the bench itself runs on demand alone."""

import pytest

from tests.bench.test_program import PROGRAMS, run


@pytest.mark.parametrize(
    ("program", "registers"), [("node_sets", True), ("stateful_sets", True), ("bare_import", False)]
)
def test_a_program_of_the_bench_deploys(program: str, *, registers: bool) -> None:
    assert (PROGRAMS / program).is_dir()
    assert (run(program, 2) > 0) is registers
