"""Renewing workers whose pods have changed, a few at a time."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soperator_pulumi.errors import DrainError, KubernetesError, NotReadyError, RunCancelledError
from soperator_pulumi.kube.pods import Pod as PodInKubernetes
from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.nodes.lease import DURATION_SECONDS, LEASE
from soperator_pulumi.operations.nodes.registration import Registration
from soperator_pulumi.operations.progress import CANCELLED
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.objects import LEASES, KilledError
from tests.fakes.workers import OWNER, Pod, Set
from tests.soak import times
from tests.unit.faults.engine import NodeSet, Program
from tests.unit.lifecycle.model import Model, a_model


@pytest.fixture
def model() -> Iterator[Model]:
    """Three idle workers of one template."""
    with a_model() as model:
        model.up(3)
        yield model


def deletions(model: Model) -> list[list[str]]:
    """Note from now on which pods go together."""
    noted: list[list[str]] = []
    usual = model.world.kubernetes.on_leave

    def leave(pods: list[Pod]) -> None:
        noted.extend([[pod.name for pod in pods]] if pods else [])
        usual(pods)

    model.world.kubernetes.on_leave = leave
    return noted


def out_of_service(model: Model) -> list[int]:
    """Note from now on how many nodes take no jobs, whenever a command comes."""
    noted: list[int] = []
    usual = model.world.programs.run

    def run(command: Sequence[str]) -> Answer:
        idle = sum(1 for name, record in model.records.items() if not record.drain and name in ready(model))
        noted.append(3 - idle)
        return usual(command)

    model.world.programs.run = run  # type: ignore[method-assign] # the model has no other place to look
    return noted


def ready(model: Model) -> list[str]:
    return [name for name, pod in model.pods.items() if pod.ready and pod.going_since is None]


def test_all_pods_are_new_in_the_end_and_all_nodes_in_service(model: Model) -> None:
    model.up(3, template="b")
    assert model.revisions() == ["b", "b", "b"]
    assert model.drained() == {}
    assert not model.differs()


def test_as_few_nodes_are_out_of_service_at_a_time_as_the_user_said(model: Model) -> None:
    noted = out_of_service(model)
    model.up(3, template="b", max_unavailable=2)
    assert max(noted) == 2


def test_a_job_ends_before_its_node_is_renewed(model: Model) -> None:
    job = model.submit(seconds=100, limit_seconds=200)
    model.up(3, template="b")
    assert (job.state, job.starts) == ("COMPLETED", 1)
    assert model.world.time > 100


def test_idle_nodes_go_first_and_then_those_whose_jobs_end_first(model: Model) -> None:
    for _ in range(2):  # a node takes two
        model.submit(seconds=200, limit_seconds=200)
    model.submit(seconds=100, limit_seconds=100)
    noted = deletions(model)
    model.up(3, template="b")
    assert noted == [["gpu-2"], ["gpu-1"], ["gpu-0"]]


def test_nodes_whose_job_does_not_end_in_time_continue_with_their_old_pods_and_the_others_are_new(model: Model) -> None:
    job = model.submit(limit_seconds=9000)
    with pytest.raises(DrainError) as raised:
        model.up(3, template="b", policy=DrainSpec.model_validate({"timeout": "1m"}))
    assert model.revisions() == ["a", "b", "b"]
    assert model.drained() == {}
    assert job.state == "RUNNING"
    assert "The rolling update of gpu stops here: 2 of 3 nodes have the new pods" in str(raised.value)


def test_after_it_stops_a_renewed_node_that_joined_meanwhile_is_in_service(model: Model) -> None:
    kubernetes, world = model.world.kubernetes, model.world
    kubernetes.new_pods_fit = False
    kubernetes.die(model.pods["gpu-2"])
    world.advance(60)
    for _ in range(4):
        model.submit()
    world.after(60, lambda: setattr(kubernetes, "new_pods_fit", True))
    with pytest.raises(DrainError):
        model.up(3, template="b", max_unavailable=2, policy=DrainSpec.model_validate({"timeout": "3m"}))
    assert (model.revisions(), model.drained()) == (["a", "a", "b"], {})


def test_without_waiting_free_nodes_are_renewed_and_a_later_run_continues_with_the_others(model: Model) -> None:
    policy = DrainSpec.model_validate({"wait": False})
    job = model.submit(seconds=1000)
    reported = model.up(3, template="b", policy=policy)
    assert model.revisions() == ["a", "b", "b"]
    assert [*model.drained()] == ["gpu-0"]
    assert "gpu: gpu-0 stays drained, and a later run recreates it: " in "\n".join(reported)
    assert model.differs()
    model.again()
    assert model.revisions() == ["a", "b", "b"]
    model.world.advance(1000)
    model.again()
    assert model.revisions() == ["b", "b", "b"]
    assert (job.state, model.drained()) == ("COMPLETED", {})


def test_a_run_that_is_cancelled_once_nodes_are_free_deletes_no_pod(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, noted = model.world.report, deletions(model)

    def cancel(text: str) -> None:
        report(text)
        if text.startswith("gpu: recreates "):
            CANCELLED.set()

    monkeypatch.setattr(model.world, "report", cancel)
    try:
        with pytest.raises(RunCancelledError):
            model.up(3, template="b")
    finally:
        CANCELLED.clear()
    assert noted == []
    assert len(model.drained()) == 1


def take_lease(model: Model) -> None:
    """Let another planner hold the Lease from now on."""
    spec = {"holderIdentity": "agent@pod-7 process 1", "leaseDurationSeconds": 30, "renewTime": "1"}
    lease = model.world.kubernetes.objects[f"{LEASES}/{LEASE}"]
    lease.update({"metadata": {"resourceVersion": "77"}, "spec": spec})


def test_a_run_that_has_lost_the_lease_leaves_the_drains_of_the_planner_that_has_it(model: Model) -> None:
    kubernetes, others = model.world.kubernetes, str(Marker(OWNER, Operation.ROLLING_UPDATE, "abcdef"))

    def take_over() -> None:
        take_lease(model)
        kubernetes.slurm.drain([*model.records], others)

    model.submit(seconds=5000, limit_seconds=9000, required=frozenset(model.records))
    model.world.later.append((model.world.time + 100, take_over))
    with pytest.raises(DrainError, match=r"agent@pod-7 process 1 drains nodes now, .* It undrains nothing\."):
        model.up(3, template="b")
    assert {*model.drained().values()} == {others}


def test_a_run_that_loses_the_lease_as_it_stops_fails_with_the_reason_for_which_it_stops(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, not_joined = model.world.kubernetes._set, Registration.not_joined
    stops: list[str] = []

    def unobserved(owner: Set) -> Json:
        body = usual(owner)
        return {**body, "status": {**body["status"], "observedGeneration": 0}} if stops else body

    def stop(*args: Any) -> str:
        if words := not_joined(*args):
            stops.append(words)
            take_lease(model)
        return words

    monkeypatch.setattr(model.world.kubernetes, "_set", unobserved)
    monkeypatch.setattr(Registration, "not_joined", stop)
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError, match="The rolling update stops here"):
        model.up(3, template="b")
    assert any("agent@pod-7 process 1 drains nodes now" in line for line in model.world.reported)


def test_new_pods_that_do_not_come_up_stop_it_with_the_reason_and_the_rest_stays_in_service(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError) as raised:
        model.up(3, template="b")
    assert model.revisions() == ["b", "a", "a"]
    assert [*model.drained()] == ["gpu-0"]
    assert "gpu-0: its pod waits for a machine: 0/3 nodes are available: 3 Insufficient cpu." in str(raised.value)
    assert "2 of 3 nodes have their old pods and stay in service" in str(raised.value)


def test_once_they_come_up_the_next_run_continues(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError):
        model.up(3, template="b")
    model.world.kubernetes.new_pods_fit = True
    model.again()
    assert (model.revisions(), model.drained()) == (["b", "b", "b"], {})


def test_a_node_that_may_be_missing_holds_nothing_up(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    model.up(4, max_unready=1)
    model.world.kubernetes.on_pod = lambda pod: setattr(pod, "schedulable", pod.name != "gpu-3")
    model.world.kubernetes.new_pods_fit = False
    reported = model.up(4, template="b", max_unready=1)
    assert model.revisions() == ["b"] * 4
    assert (sorted(model.records), model.drained()) == (["gpu-0", "gpu-1", "gpu-2"], {})
    assert reported[-1].endswith("max_unready lets 1 be missing.")


def test_broken_pods_are_renewed_at_once_as_nothing_runs_in_them(model: Model) -> None:
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError):
        model.up(3, template="b")
    model.world.kubernetes.new_pods_fit = True
    noted = deletions(model)
    model.up(3, template="c")
    assert noted[0] == ["gpu-0"]
    assert (model.revisions(), model.drained()) == (["c", "c", "c"], {})


def test_a_drain_of_someone_else_is_still_there_afterwards_and_stops_nothing(model: Model) -> None:
    model.world.slurm.drain(["gpu-1"], "disk")
    model.up(3, template="b")
    assert model.revisions() == ["b", "b", "b"]
    assert model.drained() == {"gpu-1": "disk"}


@pytest.mark.parametrize(
    "moment",
    [
        lambda model: len(model.drained()) == 1,
        lambda model: any(pod.going_since is not None for pod in model.pods.values()),
        lambda model: len(model.pods) == 2,
        lambda model: "b" in model.revisions(),
        lambda model: model.revisions().count("b") == 2,
        lambda model: model.revisions().count("b") == 3,
    ],
    ids=["drained", "pod going", "pod gone", "pod new", "second pod new", "last pod new"],
)
def test_a_run_that_was_killed_is_seen_by_the_next_diff_and_gone_on_with(
    model: Model, moment: Callable[[Model], bool]
) -> None:
    model.kill_at(lambda: moment(model))
    model.killed(3, template="b")
    assert model.differs()
    model.again()
    assert (model.revisions(), model.drained()) == (["b", "b", "b"], {})


def test_a_template_that_is_taken_back_after_a_killed_run_puts_drained_nodes_back(model: Model) -> None:
    model.kill_at(lambda: bool(model.drained()))
    model.killed(3, template="b")
    noted = deletions(model)
    model.up(3, template="a")
    assert (noted, model.drained(), model.revisions()) == ([], {}, ["a", "a", "a"])


def test_a_scale_down_while_it_is_half_done_leaves_new_nodes_in_service(model: Model) -> None:
    model.kill_at(lambda: model.revisions().count("b") == 1)
    model.killed(3, template="b")
    model.up(2, template="b")
    assert (sorted(model.records), model.drained(), model.revisions()) == (["gpu-0", "gpu-1"], {}, ["b", "b"])


def test_a_preview_says_which_nodes_are_renewed_in_what_order_and_what_runs_there(model: Model) -> None:
    model.submit(seconds=200, limit_seconds=7200)
    reported = model.preview(3, template="b")
    assert any("gpu: 3 nodes to be recreated: gpu-[0-2]" in line for line in reported)
    assert any("job 1 (alice, job1), ends by" in line for line in reported)
    assert reported[-1] == "At most 1 at a time (rolling_update.max_unavailable): gpu-[1-2], then gpu-0."
    assert model.drained() == {}


def test_a_preview_names_jobs_that_wait_for_more_memory_than_recreated_nodes_have(model: Model) -> None:
    for record in model.records.values():
        record.memory_mib = 2048
    for _ in range(6):  # a node takes two
        model.submit(seconds=200)
    model.submit(memory_mib=2048)
    model.submit(memory_mib=1024)
    assert [line for line in model.preview(3, template="b", memory_mib=1984) if "MiB on a node" in line] == [
        "  job 7 (alice, job7), 2048 MiB on a node. To let it start on them: scontrol update jobid=7 MinMemoryNode=1984"
    ]
    assert not any("MiB on a node" in line for line in model.preview(3, template="b", memory_mib=2048))


def test_a_preview_names_jobs_that_wait_for_cpus_of_cores_that_are_reserved_on_recreated_nodes(model: Model) -> None:
    for _ in range(6):  # a node takes two
        model.submit(seconds=200)
    model.submit(cpus=2)
    model.submit(cpus=1)
    named = [line for line in model.preview(3, template="b", cpus=1) if "CPUs on a node" in line]
    assert [line.strip()[:5] for line in named] == ["job 7"]
    assert not any("CPUs on a node" in line for line in model.preview(3, template="b"))


def test_a_preview_that_lowers_two_node_sets_names_a_job_that_fits_on_neither_afterwards(model: Model) -> None:
    sets = {"cpu": NodeSet(1, DrainSpec()), "gpu": NodeSet(1, DrainSpec())}
    model.begin()
    model.engine.up(Program(sets))
    for record in model.records.values():
        record.memory_mib = 2048
    for _ in range(4):  # a node takes two
        model.submit(seconds=200)
    model.submit(memory_mib=2048)

    lowered = {name: replace(node_set, template="b", memory_mib=1984) for name, node_set in sets.items()}
    model.begin()
    model.engine.preview(Program(lowered))
    held = [line for line in model.world.reported if "2048 MiB on a node" in line]
    assert len(held) == 2, "one for each node set"

    model.begin()
    model.engine.preview(Program({**lowered, "cpu": replace(sets["cpu"], memory_mib=2048)}))
    assert not [line for line in model.world.reported if "2048 MiB on a node" in line]


def test_a_preview_of_many_ends_of_jobs_tells_the_first_ten(model: Model) -> None:
    model.up(14)
    for seconds in range(1000, 1028):
        model.submit(limit_seconds=seconds)
    order = model.preview(14, template="b")[-1].partition(": ")[2]
    assert order.startswith("gpu-0, then gpu-1, then ")
    assert order.endswith(", then the other 4.")
    assert order.count("gpu-") == 10


def test_a_preview_of_a_half_done_update_names_what_is_left(model: Model) -> None:
    model.kill_at(lambda: model.revisions().count("b") == 2)
    model.killed(3, template="b")
    assert model.differs()
    assert any("1 node to be recreated: gpu-2" in line for line in model.world.reported)


def test_a_preview_counts_all_when_the_template_changes_again_in_a_half_done_update(model: Model) -> None:
    model.kill_at(lambda: model.revisions().count("b") == 2)
    model.killed(3, template="b")
    assert any("3 nodes to be recreated: gpu-[0-2]" in line for line in model.preview(3, template="c"))


def test_nodes_that_are_to_leave_once_their_jobs_end_are_not_renewed(model: Model) -> None:
    for _ in range(6):
        model.submit(seconds=300)
    policy = DrainSpec.model_validate({"wait": False})
    model.up(2, policy=policy)
    reasons = model.drained()
    model.up(2, template="b", policy=policy)
    marker = Marker.read(model.drained()["gpu-2"], OWNER)
    assert [*reasons] == ["gpu-2"]
    assert marker
    assert marker.operation is Operation.SCALE_DOWN


def test_the_place_of_a_recreated_node_goes_to_the_next_one_while_another_still_waits_for_its_job(model: Model) -> None:
    jobs = [model.submit(seconds=seconds, limit_seconds=seconds) for seconds in (100, 400, 600) for _ in range(2)]
    seen: list[set[str]] = []
    for second in (50, 200):
        model.world.after(second, lambda: seen.append({*model.drained()}))
    noted = deletions(model)
    model.up(3, template="b", max_unavailable=2)
    assert seen == [{"gpu-0", "gpu-1"}, {"gpu-1", "gpu-2"}]
    assert noted == [["gpu-0"], ["gpu-1"], ["gpu-2"]]
    assert {(job.state, job.starts) for job in jobs} <= {("COMPLETED", 1)}


def test_the_time_for_jobs_begins_with_the_drain_of_their_own_node(model: Model) -> None:
    for seconds in (100, 140, 240):
        for _ in range(2):
            model.submit(seconds=seconds, limit_seconds=seconds)
    model.up(3, template="b", max_unavailable=2, policy=DrainSpec.model_validate({"timeout": "150s"}))
    assert (model.revisions(), model.drained()) == (["b"] * 3, {})


def test_progress_tells_what_is_drained_for_which_job_until_when_and_what_is_left(model: Model) -> None:
    for _ in range(2):
        model.submit(seconds=200, limit_seconds=7200)
    model.submit(seconds=100, limit_seconds=100)
    model.submit(seconds=100, limit_seconds=100)
    reported = model.up(3, template="b")
    assert any(
        re.fullmatch(
            r"gpu: 1 of 3 nodes have the new pods; drains gpu-1 \((2 h|1 h 5\d min) left\): "
            r"gpu-1 job 3 \(alice, job3\) ends by \d\d:\d\d, "
            r"gpu-1 job 4 \(alice, job4\) ends by \d\d:\d\d; 1 left\. If interrupted, the drains stay: .*",
            line,
        )
        for line in reported
    ), reported


def without_renewal(model: Model) -> list[float]:
    """Note from now on how long ago the Lease was renewed, whenever a run that holds it has waited."""
    noted: list[float] = []
    world, renewed_at = model.world, model.world.time
    merge, sleep = world.kubernetes.merge, world.sleep

    def merge_noted(path: str, body: Json) -> Json | None:
        nonlocal renewed_at
        if path.endswith(f"/{LEASE}"):
            renewed_at = world.time
        return merge(path, body)

    def sleep_noted(seconds: float) -> None:
        sleep(seconds)
        if world.kubernetes.objects.get(f"{LEASES}/{LEASE}", {}).get("spec", {}).get("holderIdentity"):
            noted.append(world.time - renewed_at)

    world.kubernetes.merge = merge_noted  # type: ignore[method-assign]
    world.sleep = sleep_noted  # type: ignore[method-assign]
    return noted


def test_the_lease_is_renewed_while_kubernetes_does_not_observe_a_change(model: Model) -> None:
    usual, world = model.world.kubernetes._set, model.world
    begun: list[float] = []

    def late(owner: Set) -> Json:
        body = usual(owner)
        if body["status"]["readyReplicas"] < 3:
            begun.append(world.time)
        if begun and world.time < begun[0] + 50:
            body["status"]["observedGeneration"] = 0
        return body

    world.kubernetes._set = late  # type: ignore[method-assign]
    noted = without_renewal(model)
    model.up(3, template="b")
    assert world.time > begun[0] + 50
    assert max(noted) <= DURATION_SECONDS


def test_the_lease_is_renewed_while_slurmctld_undrains_nothing(model: Model) -> None:
    usual, world = model.world.programs.run, model.world

    def refuse(command: Sequence[str]) -> Answer:
        if "state=undrain" in command and world.time < 100:
            return Answer(1, "", "slurm_update error: Unexpected message received")
        return usual(command)

    world.programs.run = refuse  # type: ignore[method-assign]
    noted = without_renewal(model)
    model.up(3, template="b")
    assert world.time > 100
    assert max(noted) <= DURATION_SECONDS


def test_the_lease_is_renewed_while_a_slow_api_tells_why_many_nodes_have_not_joined(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.up(20)
    usual = PodInKubernetes.why_not_ready

    def slow(pod: PodInKubernetes, kube: Kube) -> str:
        model.world.sleep(2)
        return usual(pod, kube)

    model.world.kubernetes.new_pods_fit = False
    monkeypatch.setattr(PodInKubernetes, "why_not_ready", slow)
    noted = without_renewal(model)
    with pytest.raises(NotReadyError):
        model.up(20, template="b", max_unavailable=20)
    assert max(noted) <= DURATION_SECONDS


def test_a_template_that_does_not_work_takes_no_more_nodes_than_allowed(model: Model) -> None:
    model.up(5)
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError):
        model.up(5, template="b", max_unavailable=2, wait_until_ready=False)
    assert sorted(model.revisions()) == ["a", "a", "a", "b", "b"]
    assert len(model.drained()) == 2


def test_a_failing_template_puts_nodes_that_wait_for_their_jobs_back_into_service(model: Model) -> None:
    model.submit(seconds=9000)
    model.world.kubernetes.new_pods_fit = False
    with pytest.raises(NotReadyError):
        model.up(3, template="b", max_unavailable=3)
    assert model.revisions() == ["a", "b", "b"]
    assert sorted(model.drained()) == ["gpu-1", "gpu-2"]


def test_a_kubernetes_that_does_not_answer_for_a_while_ends_nothing(model: Model) -> None:
    def refuse(*_: object) -> NoReturn:
        raise KubernetesError("The Kubernetes API is not reached.")

    patch = pytest.MonkeyPatch()
    model.world.after(20, lambda: patch.setattr(model.world.kubernetes, "find", refuse))
    model.world.after(200, patch.undo)
    reported = model.up(3, template="b")
    assert model.revisions() == ["b"] * 3
    assert model.world.time > 200
    assert [line for line in reported if "tries again" in line] == [
        "gpu: tries again for 300 s at most: The Kubernetes API is not reached."
    ]


def test_nodes_with_jobs_are_drained_only_when_the_wait_for_idle_ones_is_over(model: Model) -> None:
    for seconds in (100, 500):
        for _ in range(2):
            model.submit(seconds=seconds, limit_seconds=seconds)
    drained: list[set[str]] = []
    for second in (50, 150, 350):
        model.world.after(second, lambda: drained.append({*model.drained()}))
    noted = deletions(model)
    reported = model.up(3, template="b", max_unavailable=3, idle_wait="5m")
    assert noted == [["gpu-2"], ["gpu-0"], ["gpu-1"]]
    assert drained == [set(), set(), {"gpu-1"}]
    assert any("2 left; waits for idle nodes (rolling_update.idle_wait)" in line for line in reported)


def test_a_preview_tells_when_nodes_with_jobs_are_drained(model: Model) -> None:
    reported = model.preview(3, template="b", idle_wait="4h")
    assert reported[-1] == "Nodes with jobs are drained after 4 h (rolling_update.idle_wait)."


def test_pods_are_read_once_a_minute_while_only_jobs_are_waited_for(model: Model) -> None:
    for _ in range(6):
        model.submit(seconds=6000, limit_seconds=6000)
    model.up(3, template="b", max_unavailable=3)
    assert model.revisions() == ["b"] * 3
    assert sum("find" in line and line.endswith("/pods") for line in model.world.log) < 200


@given(
    lengths=st.lists(st.sampled_from([0, 20, 90, 300]), min_size=1, max_size=5),
    max_unavailable=st.integers(1, 3),
    stopped_at=st.integers(0, 150),
)
@settings(max_examples=times(15, 500), deadline=None)
def test_every_node_is_recreated_once_and_no_job_is_lost_wherever_a_run_is_stopped(
    lengths: list[int], max_unavailable: int, stopped_at: int
) -> None:
    """The model itself refuses pods that go with jobs, and drains of more nodes than may be out of service."""
    left = stopped_at

    def comes() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    with a_model() as model:
        model.up(len(lengths))
        jobs = [
            model.submit(seconds, limit_seconds=seconds, required=frozenset({f"gpu-{ordinal}"}))
            for ordinal, seconds in enumerate(lengths)
            if seconds
        ]
        noted = deletions(model)
        model.kill_at(comes)
        with suppress(KilledError):
            model.up(len(lengths), template="b", max_unavailable=max_unavailable)
        left = 1_000_000
        model.again()
        assert (model.revisions(), model.drained()) == (["b"] * len(lengths), {})
        assert sorted(name for names in noted for name in names) == sorted(model.pods)
        assert {(job.state, job.starts) for job in jobs} <= {("COMPLETED", 1)}
        assert model.world.watch.violations == []
