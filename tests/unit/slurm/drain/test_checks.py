"""When a node may lose its pod. Each rule is tested by what only it speaks against."""

import pytest

from soperator_pulumi.slurm.drain.checks import RULES, Evidence, why_not_free
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.models import Job, Node
from tests.unit.slurm.drain.situation import EARLIER, OWNER, RUN, job, node


def evidence(found: Node | None, *jobs: Job, never_started: bool = False) -> Evidence:
    return Evidence("gpu-1", found, jobs, RUN, never_started)


def test_a_node_that_this_run_has_drained_and_that_holds_no_job_is_free() -> None:
    assert why_not_free(evidence(node("gpu-1", "IDLE+DRAIN", RUN))) == []


def test_a_node_that_someone_else_has_drained_and_that_holds_no_job_is_free() -> None:
    assert why_not_free(evidence(node("gpu-1", "IDLE+DRAIN", "bad fan"))) == []


def test_a_node_that_is_down_and_drained_is_free() -> None:
    """Cases 9 and 11."""
    assert why_not_free(evidence(node("gpu-1", "DOWN+DRAIN+NOT_RESPONDING", RUN))) == []


def test_a_node_that_slurmctld_does_not_know_is_free_if_slurmd_has_never_run_in_its_pod() -> None:
    assert why_not_free(evidence(None, never_started=True)) == []


def test_a_node_whose_slurmd_is_starting_is_not_free() -> None:
    starting = Evidence("gpu-1", None, (), RUN, starting=True)
    assert why_not_free(starting) == ["slurmd is starting there, waiting for its registration"]


SPOKEN_AGAINST = {
    "known": evidence(None),
    "drained": evidence(node("gpu-1", "IDLE")),
    "confirmed": evidence(node("gpu-1", "IDLE+DRAIN", EARLIER)),
    "idle": evidence(node("gpu-1", "MIXED+DRAIN", RUN)),
    "no job": evidence(node("gpu-1", "IDLE+DRAIN", RUN), job(7, "gpu-1", state="SUSPENDED")),
}


def test_every_rule_has_an_example_here() -> None:
    assert SPOKEN_AGAINST.keys() == RULES.keys()


@pytest.mark.parametrize("rule", SPOKEN_AGAINST)
def test_what_one_rule_speaks_against_would_be_free_without_it(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(why_not_free(SPOKEN_AGAINST[rule])) == 1

    monkeypatch.delitem(RULES, rule)

    assert why_not_free(SPOKEN_AGAINST[rule]) == []


@pytest.mark.parametrize(
    "state", ["CONFIGURING", "RUNNING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "COMPLETING+FAILED"]
)
def test_a_job_in_any_active_state_holds_its_node(state: str) -> None:
    """Cases 7 and 8: a node with only suspended jobs says IDLE, one whose prolog runs has no RUNNING job."""
    held = why_not_free(evidence(node("gpu-1", "IDLE+DRAIN", RUN), job(7, "gpu-1", state=state)))

    assert held == ["held by job 7"]


@pytest.mark.parametrize("state", ["ALLOCATED", "MIXED", "COMPLETING+IDLE", "COMPLETING+DOWN", "POWERING_UP+IDLE"])
def test_a_node_that_says_itself_that_it_is_busy_is_not_free_even_when_no_job_is_listed(state: str) -> None:
    """Case 10 among them."""
    assert why_not_free(evidence(node("gpu-1", f"DRAIN+{state}", RUN)))


@pytest.mark.parametrize(
    "earlier", [EARLIER, Marker(OWNER, Operation.POD_STOP), Marker(OWNER, Operation.ROLLING_UPDATE, RUN.run)]
)
def test_a_drain_of_this_cluster_counts_only_when_this_run_has_set_it(earlier: Marker) -> None:
    assert why_not_free(evidence(node("gpu-1", "IDLE+DRAIN", earlier)))


def test_a_drain_that_is_being_lifted_is_none() -> None:
    assert why_not_free(evidence(node("gpu-1", "IDLE+DRAIN+UNDRAIN", RUN))) == ["not drained yet"]
