"""Each safety rule is needed: without it the traces find that something goes wrong."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from soperator_pulumi.cluster import worker_scripts
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.operations.nodes import node_cleanup, recreation
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.drain_run import DrainRun
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.nodes.scale_down import ScaleDown
from soperator_pulumi.operations.nodes.undrain import Undrain
from soperator_pulumi.slurm import parsing
from soperator_pulumi.slurm.drain import checks, plan
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.models import Snapshot
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.spec.drain import DrainSpec, OnTimeout
from tests.soak import times
from tests.unit.faults import stage
from tests.unit.faults.invariants import ViolationError
from tests.unit.faults.traces import EVERYTHING, Focus, play

TRACES = 3000
LENGTH = 250

Mutate = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True, scope="module")
def on_stage() -> Iterator[None]:
    with stage.set_up():
        yield


def _without_rule(name: str) -> Mutate:
    return lambda patch: patch.delitem(checks.RULES, name)


def _patient(on_timeout: OnTimeout = OnTimeout.WAIT, seconds: int = 120, **more: Any) -> DrainSpec:
    return DrainSpec(
        timeout=timedelta(seconds=seconds),
        on_timeout=on_timeout,
        max_wait=timedelta(seconds=600),
        grace=timedelta(seconds=60),
        **more,
    )


def _any_marker_is_ours(patch: pytest.MonkeyPatch) -> None:
    def read(_kind: type[Marker], reason: str, owner: str) -> Marker | None:
        return Marker(owner, Operation.SCALE_DOWN, "000000") if "soperator-pulumi" in reason else None

    patch.setattr(Marker, "read", classmethod(read))


def _nobody_else_drains(patch: pytest.MonkeyPatch) -> None:
    for module in (plan, node_cleanup, recreation):
        patch.setattr(module, "drained_by_another", lambda _node, _owner: False)


def _one_look_is_enough(patch: pytest.MonkeyPatch) -> None:
    """Take away the second look after each act, behind which a rule would not be missed."""
    act = DrainRun._act

    def forgotten(self: DrainRun, planned: plan.Plan) -> bool:
        act(self, planned)
        return False

    patch.setattr(DrainRun, "_act", forgotten)


def _no_answer_is_stale(patch: pytest.MonkeyPatch) -> None:
    snapshot = ScontrolClient.snapshot

    def always_new(self: ScontrolClient, **more: bool) -> Snapshot:
        return replace(snapshot(self, **more), node_table_time=0.0, job_table_time=0.0)

    patch.setattr(ScontrolClient, "snapshot", always_new)


def _every_job_can_be_requeued(patch: pytest.MonkeyPatch) -> None:
    read = parsing._job
    patch.setattr(parsing, "_job", lambda job: replace(read(job), requeueable=True))


def _other_node_sets_have_no_say(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan, "shared", lambda *_: {})


def _any_namespace_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterRef, "uid", lambda _place, _kube: "uid-0")


def _nothing_is_put_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Undrain, "run", lambda _self: {})


def _records_without(reason: str) -> Mutate:
    kept = NodeCleanup.kept

    def mutate(patch: pytest.MonkeyPatch) -> None:
        def fewer(self: NodeCleanup, names: Any, found: Snapshot) -> dict[str, str]:
            return {name: why for name, why in kept(self, names, found).items() if reason not in why}

        patch.setattr(NodeCleanup, "kept", fewer)

    return mutate


def _deletes_nothing(provider: type) -> Mutate:
    return lambda patch: patch.setattr(provider, "delete", lambda _self, _id, _props: None)


def _replacing_is_no_reason(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ScaleDown, "_is_replaced", lambda _self, _live: False)


def _a_starting_pod_counts_as_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveNodeSet, "_starts", lambda *_, **__: False)


def _any_number_at_a_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recreation, "next_nodes", lambda left, *_others: tuple(left))


@dataclass(frozen=True)
class Mutation:
    """A rule that is taken away."""

    mutate: Mutate
    focus: Focus = EVERYTHING
    beside: Mutate = lambda _patch: None
    """Another rule that would do alone, and is taken away as well."""
    first: int = 0
    """The trace to begin with, which is known to show it. A search through all of them may take a minute."""


BUSY = ("job", "suspend", "time passes")
SCALE = Focus(policies=[_patient()], script=["scale"], kinds=BUSY)

MUTATIONS: dict[str, Mutation] = {
    "a node that slurmctld does not know is not free": Mutation(
        _without_rule("known"), replace(SCALE, kinds=("state lost", "time passes")), first=2
    ),
    "a node that is not drained is not free": Mutation(
        _without_rule("drained"), replace(SCALE, kinds=("lost before update",)), _one_look_is_enough, first=2
    ),
    "a drain of an earlier run proves nothing": Mutation(
        _without_rule("confirmed"),
        replace(
            SCALE,
            script=["scale", "nothing"],
            quiet=128,
            first_kinds=("killed after update",),
            kinds=("stale", "lost before update", "admin resumes"),
        ),
        _one_look_is_enough,
        first=541,
    ),
    "a node that is busy in Slurm's words is not free": Mutation(
        _without_rule("idle"), replace(SCALE, quiet=128, kinds=("stale", "job")), _no_answer_is_stale, first=51
    ),
    "a node on which a job is in the list is not free": Mutation(_without_rule("no job"), SCALE, first=13),
    "a node that slurmctld does not know yet takes no job at once": Mutation(
        lambda patch: patch.setattr(worker_scripts, "NEWCOMER_SECONDS", 0),
        replace(SCALE, quiet=128, kinds=("job", "scaled by hand", "machine lost", "machines full", "time passes")),
        first=149,
    ),
    "a node whose slurmd is starting is not free": Mutation(
        _a_starting_pod_counts_as_free,
        replace(SCALE, quiet=128, kinds=("job", "scaled by hand", "time passes")),
        first=2,
    ),
    "a marker is ours only when it is exactly ours": Mutation(
        _any_marker_is_ours, replace(SCALE, kinds=("admin drains",))
    ),
    "a drain of someone else is not overwritten": Mutation(
        _nobody_else_drains, replace(SCALE, kinds=("admin drains",))
    ),
    "an answer older than one before counts for nothing": Mutation(
        _no_answer_is_stale,
        replace(SCALE, policies=[_patient(OnTimeout.ABORT, 10)], quiet=192, kinds=("stale",)),
        first=32,
    ),
    "no job is requeued where another one cannot be": Mutation(
        _every_job_can_be_requeued, replace(SCALE, policies=[_patient(OnTimeout.REQUEUE, 10)], kinds=("job",)), first=5
    ),
    "a job on nodes of two node sets is treated when both policies say so": Mutation(
        _other_node_sets_have_no_say,
        Focus(policies=[_patient(OnTimeout.CANCEL, 10), _patient()], node_sets=2, script=["scale"], kinds=("job",)),
        first=9,
    ),
    "another namespace of the same name is not touched": Mutation(
        _any_namespace_will_do, Focus(script=["wrong place"], kinds=())
    ),
    "what is aborted is put back": Mutation(
        _nothing_is_put_back, replace(SCALE, policies=[_patient(OnTimeout.ABORT, 10)], kinds=("job",)), first=3
    ),
    "no record is deleted while its pod is there": Mutation(
        _records_without("its pod is there"), replace(SCALE, kinds=("scaled by hand", "time passes")), first=31
    ),
    "no record is deleted that a reservation names": Mutation(
        _records_without("reservation"), replace(SCALE, kinds=("reserve",)), first=2
    ),
    "no record is deleted that a waiting job asks for": Mutation(
        _records_without("asks for it"), replace(SCALE, kinds=("job for a node",)), first=5
    ),
    "no record is deleted that someone else has drained": Mutation(
        _records_without("someone else drained it"), replace(SCALE, kinds=("admin drains",))
    ),
    "a node set is drained before it is deleted": Mutation(
        _deletes_nothing(DrainGateProvider),
        Focus(policies=[_patient()], node_sets=2, script=["remove"], kinds=("admin resumes", "job", "time passes")),
    ),
    "nothing is destroyed before all is drained": Mutation(
        _deletes_nothing(DrainGateProvider),
        Focus(policies=[_patient(OnTimeout.ABORT, 10)], node_sets=2, script=["destroy"], kinds=()),
    ),
    "a StatefulSet that is replaced is drained before": Mutation(
        _replacing_is_no_reason, replace(SCALE, script=["replace"])
    ),
    "a rolling update takes no more nodes than it may": Mutation(
        _any_number_at_a_time, replace(SCALE, script=["roll"], kinds=())
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_without_a_rule_a_trace_goes_wrong_that_goes_well_with_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = MUTATIONS[name]
    mutation.beside(monkeypatch)
    with monkeypatch.context() as patch:
        mutation.mutate(patch)
        tried = ((number, _violation(number, mutation.focus)) for number in (mutation.first, *range(TRACES)))
        number, found = next((row for row in tried if row[1]), (0, ""))
    assert found, f"{TRACES} traces went well without: {name}"
    print(f"trace {number}: {found.splitlines()[0]}")  # noqa: T201 what went wrong is part of the result
    for item in (number, *range(times(0, 20))):
        assert _violation(item, mutation.focus) == ""


def _violation(number: int, focus: Focus) -> str:
    """Return what a trace violated; empty when it went well."""
    try:
        play(random.Random(number).randbytes(LENGTH), focus)  # noqa: S311 no secret
    except ViolationError as error:
        return str(error)
    return ""
