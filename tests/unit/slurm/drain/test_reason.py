"""By its reason, and by nothing else, a drain is known as ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.slurm.drain.reason import Marker, Operation, drain_of_ours, drained_by_another
from soperator_pulumi.slurm.models import Node

RUNS = st.text("0123456789abcdef", min_size=6, max_size=6)
OWNERS = st.text(st.characters(categories=["L", "N", "P"]), min_size=1)
REASONS = st.text(min_size=1)


@given(
    OWNERS,
    st.sampled_from([operation for operation in Operation if not operation.of_a_pod]),
    RUNS,
    REASONS | st.just(""),
)
def test_a_marker_reads_as_what_it_was(owner: str, operation: Operation, run: str, before: str) -> None:
    marker = Marker(owner, operation, run, before)
    assert Marker.read(str(marker), owner) == marker


def test_markers_look_like_this() -> None:
    assert str(Marker("hpc", Operation.SCALE_DOWN, "1a2b3c", "disk")) == (
        "soperator-pulumi hpc: scale-down 1a2b3c (was: disk)"
    )
    assert str(Marker("hpc", Operation.POD_STOP)) == "soperator-pulumi hpc: pod-stop"
    assert str(Marker("hpc", Operation.POD_START)) == "soperator-pulumi hpc: pod-start"


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "disk",
        "soperator-pulumi hpc: scale-down",
        "soperator-pulumi hpc: scale-down 1A2B3C",
        "soperator-pulumi hpc: scale-down 1a2b3c!",
        "soperator-pulumi hpc: scale-down 1a2b3c (was: )",
        "soperator-pulumi hpc: scale-down 1a2b3c, and the fan is loud",
        "soperator-pulumi hpc: pod-stop 1a2b3c",
        "soperator-pulumi hpc: pod-stop (was: disk)",
        "soperator-pulumi hpc: coffee 1a2b3c",
        "soperator-pulumi hpc: scale-down 1a2b3c : Kill task failed",
        "soperator-pulumi other: scale-down 1a2b3c",
        "soperator-pulumi hpc2: scale-down 1a2b3c",
        "see soperator-pulumi hpc: scale-down 1a2b3c",
        "slurm-operator: Pod is terminating",
    ],
)
def test_anything_else_is_someone_elses(reason: str) -> None:
    assert Marker.read(reason, "hpc") is None


@given(st.sampled_from(["", "disk"]), st.integers(1, 2))
def test_what_slurm_adds_of_a_silent_node_is_not_someone_elses(before: str, times: int) -> None:
    marker = Marker("hpc", Operation.REMOVAL, "1a2b3c", before)
    assert Marker.read(f"{marker}{' : Not responding' * times}", "hpc") == marker


@pytest.mark.parametrize("run", ["", "1a2b3", "1a2b3c4", "xyzxyz"])
def test_a_run_that_could_not_be_read_again_is_refused(run: str) -> None:
    with pytest.raises(ValueError, match="six hexadecimal digits"):
        Marker("hpc", Operation.DESTROY, run)


def test_a_pod_that_stops_knows_of_no_run() -> None:
    with pytest.raises(ValueError, match="neither a run"):
        Marker("hpc", Operation.POD_STOP, "1a2b3c")


OURS = str(Marker("hpc", Operation.SCALE_DOWN, "1a2b3c"))


@pytest.mark.parametrize(
    ("state", "reason", "ours", "others"),
    [
        ("IDLE DRAIN", OURS, True, False),
        ("DOWN DRAIN", OURS, True, False),
        ("IDLE DRAIN", "disk", False, True),
        ("IDLE DRAIN", "", False, True),
        ("IDLE FAIL", OURS, False, True),
        ("IDLE", OURS, False, False),
        ("DOWN", "disk", False, False),
    ],
)
def test_a_drain_is_ours_when_it_is_in_force_with_our_marker(
    state: str, reason: str, *, ours: bool, others: bool
) -> None:
    node = Node("gpu-0", frozenset(state.split()), frozenset(), reason)
    assert (drain_of_ours(node, "hpc") is not None) is ours
    assert drained_by_another(node, "hpc") is others
