"""The real planner and the real providers on a model of slurmctld and Kubernetes in which everything goes wrong.

What must hold is in `invariants` and at the end of `traces`; what may go wrong is in `faults` and `outside`.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.soak import times
from tests.unit.faults import stage
from tests.unit.faults.traces import play

SERIES = range(times(2, 20))
TRACES = times(200, 5000)
LENGTH = 400
"""Bytes of a trace: about as many calls can meet something."""


@pytest.fixture(autouse=True, scope="module")
def on_stage() -> Iterator[None]:
    with stage.set_up():
        yield


@pytest.mark.timeout(times(300, 3600))
@pytest.mark.parametrize("series", SERIES)
def test_no_job_and_no_drain_of_others_is_lost_whatever_goes_wrong(series: int) -> None:
    count = 0

    @seed(series)
    @settings(
        max_examples=TRACES,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[*HealthCheck],
    )
    @given(st.binary(min_size=LENGTH, max_size=LENGTH))
    def holds(data: bytes) -> None:
        nonlocal count
        count += 1
        play(data)

    holds()
    print(f"{count} fault traces")  # noqa: T201 how many there were is part of the result


REPEATED_CANCEL = (
    "0001000000000000000000860000040400000700ec000000000000000000000000d2290400000000000000d20000d2d200d2"
    "7c01000000000000000000d20000d2fad200d2"
)
"""A trace: the answer to a cancel is lost, and the job, requeued meanwhile, runs on nodes that stay."""


def test_a_cancel_that_is_repeated_spares_a_job_that_runs_elsewhere_by_now() -> None:
    play(bytes.fromhex(REPEATED_CANCEL))
