"""`soperator status` and `soperator nodes`, against slurmctld's programs as they answer."""

import json
from collections.abc import Iterator

import pytest

from soperator_pulumi.cli import load, nodes, parser_of, status
from soperator_pulumi.cli.live_cluster import LiveCluster
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.operations.nodes import lease
from soperator_pulumi.operations.nodes.lease import LEASE
from tests.fakes.objects import LEASES, NAMESPACE
from tests.fakes.slurmctld import Job, Record
from tests.fakes.small_world import SmallWorld

HEALTH = "health gpu_count: 7, allowed 8"
OURS = "soperator-pulumi slurm.prod.hpc: scale-down 1a2b3c"


@pytest.fixture
def world() -> Iterator[SmallWorld]:
    """Four nodes: one works, one has failed a check, a deployment drains one, and one is idle."""
    lease._held.clear()
    made = SmallWorld()
    made.add_pod("controller-0", "controller")
    records = [("cpu-0", ""), ("cpu-1", HEALTH), ("cpu-2", OURS), ("cpu-3", "")]
    for name, reason in records:
        made.add_pod(name, "worker", node_set="cpu")
        made.slurm.nodes[name] = Record(name, drain=bool(reason), reason=reason)
    made.slurm.jobs[7] = Job(7, state="RUNNING", nodes=("cpu-0",))
    yield made
    lease._held.clear()


def carry_out(world: SmallWorld, *words: str) -> int:
    """Run `soperator nodes` on the world."""
    command, *rest = words
    given = parser_of("nodes", load("nodes")).parse_args([command, "-n", NAMESPACE, *rest])
    return nodes.carry_out(given, LiveCluster.at(world, NAMESPACE), world.clock)


def test_one_screen_has_nodes_jobs_and_reasons_failed_checks_first(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status.show(LiveCluster.at(world, NAMESPACE), as_json=False) == status.EXIT_FOUND
    shown = capsys.readouterr().out
    assert shown.startswith("hpc: 4 nodes, 1 job\n")
    assert shown.index(f"cpu-1: {HEALTH}") < shown.index(f"cpu-2: {OURS}")
    assert "  drained           2\n" in shown
    assert "  running           1\n" in shown


def test_a_cluster_whose_nodes_all_take_jobs_has_status_0(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    for record in world.slurm.nodes.values():
        record.drain, record.reason = False, ""
    assert status.show(LiveCluster.at(world, NAMESPACE), as_json=False) == 0
    assert "All nodes take jobs." in capsys.readouterr().out


def test_the_status_for_programs_has_the_failed_checks_and_the_jobs_of_nodes(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    status.show(LiveCluster.at(world, NAMESPACE), as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["failed_checks"] == {"gpu_count": 1}
    assert [(node["name"], node["jobs"]) for node in found["nodes"] if node["jobs"]] == [("cpu-0", ["7"])]


def test_checks_that_drain_nothing_are_shown_with_their_nodes_and_leave_the_status_0(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    for record in world.slurm.nodes.values():
        record.drain, record.reason = False, ""
    world.slurm.nodes["cpu-1"].extra = "health:clock,volume_space"
    world.slurm.nodes["cpu-2"].extra = "health:clock"
    world.slurm.nodes["cpu-3"].extra = "rack 7"
    cluster = LiveCluster.at(world, NAMESPACE)

    assert status.show(cluster, as_json=False) == 0
    shown = capsys.readouterr().out
    assert "  cpu-[1-2]: clock\n  cpu-1: volume_space\n" in shown
    assert "soperator nodes explain -n hpc cpu-[1-2]\n" in shown
    carry_out(world, "explain", "cpu-1")
    assert "  Checks fail that drain nothing: clock, volume_space." in capsys.readouterr().out
    status.show(cluster, as_json=True)
    found = {node["name"]: node["findings"] for node in json.loads(capsys.readouterr().out)["nodes"]}
    assert found == {"cpu-0": [], "cpu-1": ["clock", "volume_space"], "cpu-2": ["clock"], "cpu-3": []}


def test_a_drain_has_the_reason_that_is_given_and_names_the_jobs_that_are_left(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(world, "drain", "cpu-[0,3]", "--reason", "new disk") == 0
    assert {world.slurm.nodes[name].reason for name in ("cpu-0", "cpu-3")} == {"new disk"}
    shown = capsys.readouterr().out
    assert shown.startswith("draining: cpu-[0,3]\n  job 7 ")
    assert "on cpu-0, " in shown


def test_a_drain_that_waits_ends_when_the_job_has_ended_or_says_that_it_has_not(world: SmallWorld) -> None:
    assert carry_out(world, "drain", "cpu-0", "--reason", "new disk", "--wait", "60") == nodes.EXIT_BUSY
    assert world.clock.time >= 60
    world.clock.after(30, world.slurm.jobs.clear)
    assert carry_out(world, "drain", "cpu-0", "--reason", "new disk", "--wait", "60", "--force") == 0


def test_another_s_drain_is_left_alone_without_force(world: SmallWorld) -> None:
    with pytest.raises(SoperatorError, match=r"1 node drained already, and nothing was changed:\n  cpu-1: health"):
        carry_out(world, "drain", "cpu-[0-1]", "--reason", "new disk")
    assert not world.slurm.nodes["cpu-0"].drain


def test_the_drain_of_a_deployment_is_not_undrained_without_force(world: SmallWorld) -> None:
    with pytest.raises(SoperatorError, match="cpu-2: soperator-pulumi"):
        carry_out(world, "undrain", "cpu-[1-2]")
    assert carry_out(world, "undrain", "cpu-[1-2]", "--force") == 0
    assert not any(record.drain for record in world.slurm.nodes.values())


def test_an_unknown_node_changes_nothing(world: SmallWorld) -> None:
    with pytest.raises(SoperatorError, match=r"slurmctld knows no cpu-9\. Nothing was changed\."):
        carry_out(world, "drain", "cpu-0,cpu-9", "--reason", "new disk")
    assert not world.slurm.nodes["cpu-0"].drain


def test_a_text_that_is_no_list_of_nodes_is_refused(world: SmallWorld) -> None:
    with pytest.raises(SoperatorError, match="Name nodes as Slurm does"):
        carry_out(world, "explain", "cpu-[a-b]")


@pytest.mark.parametrize("reason", ["", " ", "health gpu: mine", OURS, "two\nlines"])
def test_a_reason_that_checks_or_deployments_would_undo_is_refused(reason: str, world: SmallWorld) -> None:
    with pytest.raises(SystemExit):
        carry_out(world, "drain", "cpu-0", "--reason", reason)


def test_no_deployment_drains_at_the_same_time(world: SmallWorld) -> None:
    seen: list[bool] = []
    world.slurm.on_command = lambda _verb, _names: seen.append(f"{LEASES}/{LEASE}" in world.objects)
    carry_out(world, "drain", "cpu-3", "--reason", "new disk")
    assert seen == [True]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("cpu-0", "It takes jobs."),
        ("cpu-1", "The health check gpu_count has drained it"),
        ("cpu-2", "A deployment of slurm.prod.hpc drains it (scale-down, run 1a2b3c)."),
    ],
)
def test_an_explanation_names_who_holds_the_node(
    node: str, words: str, world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    carry_out(world, "explain", node)
    assert words in capsys.readouterr().out


def test_an_explanation_names_the_pod_that_does_not_start(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.add_pod("cpu-3", "worker", "unschedulable", node_set="cpu")
    carry_out(world, "explain", "cpu-3", "--json")
    (found,) = json.loads(capsys.readouterr().out)
    assert found["pod"].startswith("waits for a machine")
