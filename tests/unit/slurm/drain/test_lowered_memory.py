"""Jobs that wait for more memory than nodes will have are named before Slurm holds them."""

from dataclasses import replace
from typing import Any

from soperator_pulumi.slurm.drain.lowered_memory import held_lines
from soperator_pulumi.slurm.models import Job, Node, Snapshot
from tests.unit.slurm.drain.situation import job, node, snapshot

MIB = 8192


def nodes(*names: str, mib: int = MIB, partition: str = "main") -> list[Node]:
    return [replace(node(name), memory_mib=mib, partitions=frozenset({partition})) for name in names]


def waiting(number: int, mib: int, **more: Any) -> Job:
    return replace(job(number, state="PENDING", **more), partitions=frozenset({"main"}), node_memory_mib=mib)


def lines(said: Snapshot, *names: str, mib: int = 7936) -> list[str]:
    return [*held_lines(names, mib, said)]


def test_a_job_that_asks_for_all_memory_of_a_node_is_named_with_the_command_that_lowers_it() -> None:
    said = snapshot(nodes("cpu-0", "cpu-1"), [waiting(7, MIB), waiting(8, 7936), waiting(9, 0)])
    assert lines(said, "cpu-0", "cpu-1") == [
        "Held by Slurm (BadConstraints) once these nodes have 7936 MiB, because too few others have what they ask for:",
        (
            "  job 7 (alice, train.sh), 8192 MiB on a node. To let it start on them: "
            "scontrol update jobid=7 MinMemoryNode=7936"
        ),
    ]


def test_a_job_that_finds_its_nodes_elsewhere_is_not_named() -> None:
    said = snapshot([*nodes("cpu-0"), *nodes("big-0", "big-1")], [waiting(7, MIB), waiting(8, MIB, node_count=3)])
    assert [line.strip()[:5] for line in lines(said, "cpu-0")[1:]] == ["job 8"]


def test_nodes_of_other_partitions_and_nodes_that_a_job_does_not_ask_for_are_not_elsewhere() -> None:
    asks = waiting(8, MIB, required_nodes=frozenset({"cpu-0"}))
    other = [*nodes("cpu-0"), *nodes("big-0", partition="big")]
    assert lines(snapshot(other, [waiting(7, MIB)]), "cpu-0")
    assert lines(snapshot(nodes("cpu-0", "cpu-1"), [asks]), "cpu-0")


def test_a_job_that_could_never_run_and_jobs_that_run_are_not_named() -> None:
    running = replace(waiting(8, MIB), state=frozenset({"RUNNING"}))
    assert not lines(snapshot(nodes("cpu-0"), [waiting(7, 2 * MIB), running]), "cpu-0")


def test_more_memory_holds_no_job() -> None:
    assert not lines(snapshot(nodes("cpu-0"), [waiting(7, MIB)]), "cpu-0", mib=2 * MIB)


def test_of_many_jobs_the_first_ten_are_named() -> None:
    found = lines(snapshot(nodes("cpu-0"), [waiting(number, MIB) for number in range(1, 13)]), "cpu-0")
    assert len(found) == 12
    assert found[-1] == "  and 2 more jobs"
