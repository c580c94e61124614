"""A rolling update in which jobs, people, slurmctld and Kubernetes do what it did not expect."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from soperator_pulumi.errors import DrainError, KubernetesError, NotReadyError
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.drain import DrainSpec
from tests.unit.lifecycle.model import Model, a_model
from tests.unit.operations.nodes.bench import Bench, a_policy, leaving

_LONG_SECONDS = 90_000
_LIMIT_SECONDS = 3 * 3600


@pytest.fixture
def model() -> Iterator[Model]:
    """Three nodes, with room for two jobs on each. An update that does not end in three hours fails."""
    with a_model() as model:
        model.up(3)
        usual, began = model.world.sleep, model.world.time

        def sleep(seconds: float) -> None:
            assert model.world.time - began < _LIMIT_SECONDS, "the update does not end"
            usual(seconds)

        model.world.sleep = sleep  # type: ignore[method-assign]
        yield model


def policy(**values: Any) -> DrainSpec:
    return DrainSpec.model_validate(values)


def fill(model: Model) -> None:
    for _ in range(6):
        model.submit(limit_seconds=_LONG_SECONDS)


def updates(model: Model) -> int:
    """Return the number of times that Slurm was told to change a node."""
    return sum("update" in command for command in model.commands)


def test_a_requeued_job_that_starts_on_the_next_old_node_has_its_time_there(model: Model) -> None:
    for _ in range(3):
        model.submit(limit_seconds=_LONG_SECONDS)
    requeue = policy(timeout="10m", on_timeout="requeue")
    model.world.watch.policies["gpu"] = [requeue]

    model.up(3, template="b", policy=requeue)

    assert model.revisions() == ["b"] * 3


def test_a_part_of_a_job_on_another_node_set_keeps_that_ones_policy(bench: Bench) -> None:
    bench.world.slurm.register("cpu-0", weight=9)
    for node in ("gpu-3", "cpu-0"):
        bench.submit(required=frozenset({node}))
    draining = bench.draining()
    usual = draining.context.slurm.snapshot

    def in_parts(**options: Any) -> Any:
        found = usual(**options)
        return replace(found, jobs=tuple(replace(job, whole="1") for job in found.jobs))

    draining.context.slurm.snapshot = in_parts  # type: ignore[method-assign]
    context = replace(draining.context, policies=lambda: {"cpu": a_policy(timeout="2h")})
    cancelling = leaving("gpu-3", policy=a_policy(timeout="1m", on_timeout="cancel"))

    with pytest.raises(DrainError, match=r"whose drain\.on_timeout is abort"):
        replace(draining, context=context).free([cancelling], Operation.SCALE_DOWN)

    assert bench.world.slurm.jobs[1].state == "RUNNING"


def test_a_template_that_is_taken_back_ends_the_update(model: Model) -> None:
    fill(model)

    def take_back() -> None:
        found = model.world.kubernetes.sets["gpu"]
        found.template, found.generation = "a", found.generation + 1

    model.world.after(60, take_back)

    model.up(3, template="b")

    assert (model.drained(), model.revisions()) == ({}, ["a"] * 3)
    assert updates(model) < 20


def test_a_pod_that_is_replaced_while_its_node_drains_is_undrained_once(model: Model) -> None:
    fill(model)

    def crash() -> None:
        model.world.slurm.crash(60)
        for name in model.drained():
            model.world.kubernetes.die(model.pods[name])

    model.world.after(60, crash)

    with pytest.raises(DrainError, match="not free after 10 min"):
        model.up(3, template="b", policy=policy(timeout="10m"))

    assert updates(model) < 20


def test_a_node_that_joins_after_a_time_out_of_others_undrains_itself(model: Model) -> None:
    for _ in range(3):
        model.submit(limit_seconds=_LONG_SECONDS)
    model.world.kubernetes.new_pods_fit = False

    with pytest.raises(DrainError):
        model.up(3, template="b", max_unavailable=2, policy=policy(timeout="5m"))
    model.world.kubernetes.new_pods_fit = True
    model.world.advance(600)

    assert "b" in model.revisions()
    assert model.drained() == {}


def test_an_old_pod_whose_slurmd_has_never_registered_is_recreated(model: Model) -> None:
    slurm, old = model.world.slurm, model.pods["gpu-1"].uid
    usual = slurm.register

    def register(name: str, weight: int, reason: str = "") -> bool:
        return model.pods[name].uid != old and usual(name, weight, reason)

    slurm.register = register  # type: ignore[method-assign]
    model.pods["gpu-1"].registered = False
    slurm.delete("gpu-1")

    model.up(3, template="b", policy=policy(timeout="30m"))

    assert model.revisions() == ["b"] * 3


def test_without_waiting_a_lost_answer_leaves_no_free_node_behind(model: Model) -> None:
    usual, questions = model.world.programs.run, []

    def run(command: Any) -> Any:
        if " ".join(command) == "scontrol show nodes --json" and any("drains gpu-0" in x for x in model.world.reported):
            questions.append(command)
            if len(questions) == 2:
                return Answer(1, "", "Unable to contact slurm controller (connect failure)")
        return usual(command)

    model.world.programs.run = run  # type: ignore[method-assign]

    model.up(3, template="b", policy=policy(wait=False))

    assert (model.revisions(), model.drained()) == (["b"] * 3, {})


def test_slurmctld_may_be_silent_for_as_long_as_a_node_may_take_to_join(model: Model) -> None:
    usual = model.world.report
    crashes: list[str] = []

    def report(text: str) -> None:
        usual(text)
        if "recreates gpu-0" in text and not crashes:
            crashes.append(text)
            model.world.after(2, lambda: model.world.slurm.crash(320))

    model.world.report = report  # type: ignore[method-assign]

    model.up(3, template="b")

    assert (model.revisions(), model.drained()) == (["b"] * 3, {})


def test_one_refusal_of_kubernetes_after_a_long_silence_of_slurmctld_is_borne(model: Model) -> None:
    for _ in range(5):
        model.submit(seconds=500, limit_seconds=_LONG_SECONDS)
    kubernetes = model.world.kubernetes
    usual = kubernetes.find
    refusals: list[object] = []

    def find(*arguments: Any, **options: Any) -> Any:
        if not refusals and any("answers again" in line for line in model.world.reported):
            refusals.append(arguments)
            raise KubernetesError("once")
        return usual(*arguments, **options)

    kubernetes.find = find  # type: ignore[method-assign]
    model.world.after(30, lambda: model.world.slurm.crash(330))

    model.up(3, template="b")

    assert refusals
    assert model.revisions() == ["b"] * 3


def test_nodes_with_jobs_that_a_person_has_drained_count_as_those_in_service(model: Model) -> None:
    nodes = ["gpu-0", "gpu-1", "gpu-2"]
    fill(model)
    model.world.slurm.drain(nodes, "disk")
    model.world.after(60, lambda: model.world.slurm.resume(nodes))

    with pytest.raises(DrainError):
        model.up(3, template="b", policy=policy(timeout="10m"))

    assert not [line for line in model.world.reported if "drains gpu-[0-2]" in line]


def test_a_job_over_all_nodes_runs_to_its_end(model: Model) -> None:
    wide = model.submit(width=3, seconds=1000, limit_seconds=2000)

    model.up(3, template="b")

    assert (wide.starts, wide.state) == (1, "COMPLETED")
    assert model.revisions() == ["b"] * 3


def test_a_template_that_does_not_work_takes_no_more_nodes_than_max_unavailable(model: Model) -> None:
    model.up(6)
    model.world.kubernetes.new_pods_fit = False

    with pytest.raises(NotReadyError):
        model.up(6, template="b", max_unavailable=2, max_unready=3)

    assert model.revisions().count("b") == 2


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
def test_a_mended_template_begins_with_the_nodes_on_which_the_one_before_failed(model: Model, killed: bool) -> None:
    model.up(6)
    model.world.kubernetes.new_pods_fit = False
    if killed:
        model.kill_at(lambda: model.revisions().count("b") == 2)
        model.killed(6, template="b", max_unavailable=2, max_unready=3)
    else:
        with pytest.raises(NotReadyError):
            model.up(6, template="b", max_unavailable=2, max_unready=3)
    model.world.kubernetes.new_pods_fit = True
    recreated: list[str] = []
    model.world.kubernetes.on_leave = lambda pods: recreated.extend(pod.name for pod in pods)

    model.up(6, template="c", max_unavailable=2, max_unready=3)

    assert recreated[:2] == ["gpu-0", "gpu-1"]
    assert (model.revisions(), model.drained()) == (["c"] * 6, {})


def keep_down(model: Model, name: str) -> None:
    """Let no pod of this name start that is made from now on."""

    def made(pod: Any) -> None:
        if pod.name == name:
            pod.born_at = inf

    model.world.kubernetes.on_pod = made


def test_a_dead_node_that_may_be_missing_holds_no_update_up(model: Model) -> None:
    keep_down(model, "gpu-1")
    model.world.kubernetes.die(model.pods["gpu-1"])
    model.world.advance(600)

    model.up(3, template="b", max_unready=1)

    assert model.revisions() == ["b"] * 3


def test_once_a_node_has_joined_others_that_may_be_missing_hold_no_later_run_up(model: Model) -> None:
    keep_down(model, "gpu-1")
    model.kill_at(lambda: model.revisions() == ["b", "b", "a"])
    model.killed(3, template="b", max_unready=1)

    model.up(3, template="b", max_unready=1)

    assert model.revisions() == ["b"] * 3


def test_a_dead_node_that_may_be_missing_holds_no_later_run_up_after_a_time_out(model: Model) -> None:
    keep_down(model, "gpu-1")
    model.world.kubernetes.die(model.pods["gpu-1"])
    model.world.advance(600)
    for _ in range(4):
        model.submit(seconds=900, limit_seconds=5000)
    abort = policy(timeout="10m", on_timeout="abort")
    model.world.watch.policies["gpu"] = [abort]
    with pytest.raises(DrainError):
        model.up(3, template="b", max_unready=1, policy=abort)
    model.world.advance(2000)

    model.up(3, template="b", max_unready=1, policy=abort)

    assert model.revisions() == ["b"] * 3


def test_nodes_that_join_later_have_their_own_time_to_be_undrained(model: Model) -> None:
    world, began = model.world, model.world.time
    usual = world.programs.run

    def refuse(command: Sequence[str]) -> Answer:
        if "state=undrain" in command and world.time - began < 200:
            return Answer(1, "", "slurm_update error: Unexpected message received")
        return usual(command)

    def first_one_fits() -> None:
        model.pods["gpu-0"].schedulable = True

    def others_fit() -> None:
        world.kubernetes.new_pods_fit = True

    world.programs.run = refuse  # type: ignore[method-assign]
    world.kubernetes.new_pods_fit = False
    world.after(30, first_one_fits)
    world.after(100, others_fit)

    model.up(3, template="b", max_unavailable=3)

    assert model.drained() == {}
    assert world.time - began > 200
