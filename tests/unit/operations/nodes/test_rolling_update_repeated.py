"""A rolling update that is tried again: after a failure, and after a kill at any call."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from math import inf

import pytest

from soperator_pulumi.errors import DrainError, NotReadyError
from soperator_pulumi.operations.nodes.live_node_set import TAKEN_ANNOTATION
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.slurmctld import Job
from tests.fakes.workers import Pod
from tests.soak import times
from tests.unit.lifecycle.model import Model, a_model

_MOMENTS = times(24, 240)
_NODES = 4
_STREAM_SECONDS = 300


@pytest.fixture
def model() -> Iterator[Model]:
    """Six nodes of one template."""
    with a_model() as model:
        model.up(6)
        yield model


def break_template(model: Model) -> None:
    """Let no pod start that is made from now on."""
    model.world.kubernetes.new_pods_fit = False


def keep_down(model: Model, *names: str) -> None:
    """Let no pod with one of these names start that is made from now on."""

    def made(pod: Pod) -> None:
        if pod.name in names:
            pod.born_at = inf

    model.world.kubernetes.on_pod = made


def fails(model: Model, template: str = "b", *, max_unavailable: int = 2, max_unready: int = 3) -> str:
    """Run the update, and return the words of its failure."""
    with pytest.raises(NotReadyError) as raised:
        model.up(6, template=template, max_unavailable=max_unavailable, max_unready=max_unready)
    return str(raised.value)


def taken(model: Model) -> str:
    return model.world.kubernetes.sets["gpu"].annotations.get(TAKEN_ANNOTATION, "")


def test_a_failing_template_takes_no_further_nodes_however_often_it_is_tried(model: Model) -> None:
    break_template(model)

    for _ in range(3):
        fails(model)

    assert model.revisions() == ["b", "b", "a", "a", "a", "a"]
    assert sorted(model.drained()) == ["gpu-0", "gpu-1"]


@pytest.mark.parametrize("moment", ["drained", "one pod new", "all pods new"])
def test_a_failing_template_takes_no_further_nodes_after_a_killed_run(model: Model, moment: str) -> None:
    happens = {
        "drained": lambda: len(model.drained()) == 2,
        "one pod new": lambda: "b" in model.revisions(),
        "all pods new": lambda: model.revisions().count("b") == 2,
    }
    break_template(model)
    model.kill_at(happens[moment])
    model.killed(6, template="b", max_unavailable=2, max_unready=3)

    for _ in range(2):
        fails(model)

    assert model.revisions().count("b") == 2


def test_dead_nodes_that_may_be_missing_are_recreated_in_addition_to_those_that_a_failing_template_takes(
    model: Model,
) -> None:
    for name in ("gpu-2", "gpu-4"):
        model.world.kubernetes.die(model.pods[name])
    break_template(model)
    model.world.advance(600)

    for _ in range(3):
        fails(model)

    assert model.revisions() == ["b", "b", "b", "a", "b", "a"]


def test_a_repeated_run_says_which_nodes_count_against_which_number(model: Model) -> None:
    keep_down(model, "gpu-5")
    model.world.kubernetes.die(model.pods["gpu-5"])
    model.world.advance(600)
    break_template(model)
    fails(model)

    fails(model)

    counts = [line for line in model.world.reported if " count " in line]
    assert [line.partition(":")[2].partition(":")[0] for line in counts] == [
        " against max_unavailable (2) count gpu-[0-1]",
        " against max_unready (3) count gpu-5",
    ]


def test_the_failure_says_how_to_go_on_if_only_machines_are_broken_and_that_works(model: Model) -> None:
    keep_down(model, "gpu-0")
    words = fails(model, max_unavailable=1, max_unready=1)
    assert "gpu-0 counts against rolling_update.max_unavailable (1)" in words
    assert words.endswith("raise it for one run, to 2.")

    model.up(6, template="b", max_unavailable=2, max_unready=1)

    assert model.revisions() == ["b"] * 6


def test_a_node_that_died_with_its_old_pod_after_a_run_that_stopped_holds_no_later_run_up(model: Model) -> None:
    abort = DrainSpec.model_validate({"timeout": "10m", "on_timeout": "abort"})
    for _ in range(12):
        model.submit(seconds=900, limit_seconds=5000)
    with pytest.raises(DrainError):
        model.up(6, template="b", max_unready=1, policy=abort)
    keep_down(model, "gpu-0")
    model.world.kubernetes.die(model.pods["gpu-0"])
    model.world.advance(2000)

    model.up(6, template="b", max_unready=1, policy=abort)

    assert model.revisions() == ["b"] * 6


def test_a_mended_template_goes_on_although_a_machine_of_the_failed_one_is_broken(model: Model) -> None:
    keep_down(model, "gpu-0")
    fails(model, max_unavailable=1, max_unready=1)

    model.up(6, template="c", max_unready=1)

    assert model.revisions() == ["c"] * 6


def test_nothing_is_recorded_once_all_nodes_are_new(model: Model) -> None:
    model.up(6, template="b")

    assert taken(model) == ""


@pytest.mark.parametrize(
    "text", ["", "null", "[1]", "{}", '{"revision": "gpu-b"}', '{"revision": "gpu-b", "nodes": "["}']
)
def test_a_record_that_was_edited_by_hand_counts_as_none(model: Model, text: str) -> None:
    model.world.kubernetes.sets["gpu"].annotations[TAKEN_ANNOTATION] = text

    model.up(6, template="b", max_unavailable=2)

    assert model.revisions() == ["b"] * 6


def test_a_record_of_nodes_that_the_node_set_has_no_more_is_forgotten(model: Model) -> None:
    record = json.dumps({"revision": "gpu-b", "nodes": "gpu-[7-9],cpu-0"})
    model.world.kubernetes.sets["gpu"].annotations[TAKEN_ANNOTATION] = record

    model.up(6, template="b")

    assert (model.revisions(), taken(model)) == (["b"] * 6, "")


# -- killed at any call ---------------------------------------------------------------------------------------------


class BusyCluster:
    """Four nodes, and jobs of mixed lengths that come all the time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls = 0
        self.jobs: list[Job] = []
        self.most_out_of_service = 0
        model.up(_NODES)
        self._began = model.world.time
        self._submit()
        self._watch()

    def update(self, killed_at: float = inf) -> None:
        """Run the update, and if it is killed at this call, run it again to the end."""
        self.calls = 0
        if killed_at < inf:
            self.model.kill_at(lambda: self._counts() > killed_at)
            self.model.killed(_NODES, template="b", max_unavailable=2)
            self.model.again()
        else:
            self.model.kill_at(lambda: self._counts() > inf)
            self.model.up(_NODES, template="b", max_unavailable=2)
        self.model.world.advance(_STREAM_SECONDS + 200)

    def _counts(self) -> int:
        self.calls += 1
        return self.calls

    def _submit(self) -> None:
        world, length = self.model.world, (15, 40, 90, 25)[len(self.jobs) % 4]
        self.jobs.append(self.model.submit(seconds=length, limit_seconds=2 * length))
        if world.time < self._began + _STREAM_SECONDS:
            world.after(10, self._submit)

    def _watch(self) -> None:
        usual = self.model.world.programs.run

        def run(command: Sequence[str]) -> Answer:
            answer = usual(command)
            pods = self.model.pods
            serve = [name for name, node in self.model.records.items() if not node.drain and pods[name].ready]
            self.most_out_of_service = max(self.most_out_of_service, _NODES - len(serve))
            return answer

        self.model.world.programs.run = run  # type: ignore[method-assign] # the model has no other place to look


@cache
def _calls() -> int:
    with a_model() as model:
        busy = BusyCluster(model)
        busy.update()
        return busy.calls


@pytest.mark.parametrize("part", range(_MOMENTS))
def test_an_update_that_is_killed_at_any_call_goes_on_and_loses_no_job_of_a_steady_stream(part: int) -> None:
    with a_model() as model:
        busy = BusyCluster(model)

        busy.update(killed_at=_calls() * part // _MOMENTS)

        assert {(job.state, job.starts) for job in busy.jobs} == {("COMPLETED", 1)}
        assert (model.revisions(), model.drained(), taken(model)) == (["b"] * _NODES, {}, "")
        assert busy.most_out_of_service <= 2
        assert model.world.watch.violations == []
