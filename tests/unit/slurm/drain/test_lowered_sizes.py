"""Jobs that wait for larger nodes than there will be are named before Slurm holds them."""

import time
from dataclasses import replace
from typing import Any

from soperator_pulumi.slurm.drain.lowered_sizes import held_lines
from soperator_pulumi.slurm.models import Job, Node, NodeSize, Snapshot
from tests.unit.slurm.drain.situation import job, node, snapshot

MIB = 8192
CPUS = 16


def nodes(*names: str, mib: int = MIB, partition: str = "main") -> list[Node]:
    return [replace(node(name), memory_mib=mib, cpus=CPUS, partitions=frozenset({partition})) for name in names]


def waiting(number: int, mib: int, **more: Any) -> Job:
    return replace(job(number, state="PENDING", **more), partitions=frozenset({"main"}), node_memory_mib=mib)


def lines(said: Snapshot, *names: str, mib: int = 7936, cpus: int | None = CPUS, **others: int) -> list[str]:
    """Return the lines about nodes of the set `cpu`; the set `big` stays as it is by default."""
    memory_mib = {"big": MIB, **others}
    sizes = {name: NodeSize(size, CPUS) for name, size in memory_mib.items()}
    return [*held_lines("cpu", names, {**sizes, "cpu": NodeSize(mib, cpus)}, said)]


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


def test_a_job_whose_other_nodes_are_lowered_in_the_same_update_is_named_for_both_node_sets() -> None:
    said = snapshot([*nodes("a-0"), *nodes("b-0")], [waiting(7, MIB)])
    sizes = {"a": NodeSize(7936, CPUS), "b": NodeSize(7936, CPUS)}
    assert [*held_lines("a", ["a-0"], sizes, said)]
    assert [*held_lines("b", ["b-0"], sizes, said)]


def test_a_job_whose_other_nodes_leave_is_named() -> None:
    said = snapshot([*nodes("cpu-0"), *nodes("big-0")], [waiting(7, MIB)])
    assert [*held_lines("cpu", ["cpu-0"], {"cpu": NodeSize(7936, CPUS)}, said)]


def test_a_job_that_only_loses_nodes_of_another_set_is_not_named_for_this_one() -> None:
    said = snapshot([*nodes("cpu-0"), *nodes("big-0", mib=2 * MIB)], [waiting(7, 2 * MIB)])
    assert not lines(said, "cpu-0", big=MIB)


def test_nodes_without_the_generic_resources_of_a_job_are_not_elsewhere() -> None:
    gpus, shards = frozenset({"gpu"}), frozenset({"gpu", "shard"})
    said = snapshot([*(replace(found, generic_resources=gpus) for found in nodes("cpu-0")), *nodes("big-0")])
    asks = replace(waiting(7, MIB), generic_resources=gpus)
    assert lines(replace(said, jobs=(asks,)), "cpu-0")
    assert not lines(replace(said, jobs=(waiting(7, MIB),)), "cpu-0")
    assert not lines(replace(said, jobs=(replace(asks, generic_resources=shards),)), "cpu-0"), "it fits nowhere now"


def test_without_the_memory_of_the_node_set_no_job_is_named() -> None:
    assert not [*held_lines("cpu", ["cpu-0"], {}, snapshot(nodes("cpu-0"), [waiting(7, MIB)]))]


def test_nodes_of_other_partitions_and_nodes_that_a_job_does_not_ask_for_are_not_elsewhere() -> None:
    asks = waiting(8, MIB, required_nodes=frozenset({"cpu-0"}))
    other = [*nodes("cpu-0"), *nodes("big-0", partition="big")]
    assert lines(snapshot(other, [waiting(7, MIB)]), "cpu-0")
    assert lines(snapshot(nodes("cpu-0", "cpu-1"), [asks]), "cpu-0")


def test_a_job_that_could_never_run_and_jobs_that_run_are_not_named() -> None:
    running = replace(waiting(8, MIB), state=frozenset({"RUNNING"}))
    assert not lines(snapshot(nodes("cpu-0"), [waiting(7, 2 * MIB), running]), "cpu-0")


def test_a_job_that_asks_for_cpus_of_cores_that_are_reserved_is_named_and_has_to_be_submitted_again() -> None:
    asks = [replace(waiting(number, 0), node_cpus=cpus) for number, cpus in ((7, 16), (8, 14))]
    assert lines(snapshot(nodes("cpu-0"), asks), "cpu-0", mib=MIB, cpus=14) == [
        "Held by Slurm (BadConstraints) once these nodes have 14 CPUs, because too few others have what they ask for:",
        (
            "  job 7 (alice, train.sh), 16 CPUs on a node. To let it start on them, cancel it and submit it with at "
            "most 14 CPUs on a node"
        ),
    ]


def test_a_job_is_told_of_what_it_asks_too_much_of_and_the_heading_of_all_that_shrinks() -> None:
    asks = [replace(waiting(7, MIB), node_cpus=1), replace(waiting(8, MIB), node_cpus=16)]
    first, *found = lines(snapshot(nodes("cpu-0"), asks), "cpu-0", cpus=1)
    assert "once these nodes have 1 CPU and 7936 MiB, because" in first
    assert [line.partition(", ")[2].partition("train.sh), ")[2] for line in found] == [
        "8192 MiB on a node. To let it start on them: scontrol update jobid=7 MinMemoryNode=7936",
        (
            "16 CPUs and 8192 MiB on a node. To let it start on them, cancel it and submit it with at most 1 CPU and "
            "7936 MiB on a node"
        ),
    ]


def test_a_job_that_finds_its_cpus_elsewhere_is_not_named_but_is_if_the_other_nodes_leave() -> None:
    asks = replace(waiting(7, 0), node_cpus=16)
    said = snapshot([*nodes("cpu-0"), *nodes("big-0")], [asks])
    assert not lines(said, "cpu-0", cpus=14)
    assert [*held_lines("cpu", ["cpu-0"], {"cpu": NodeSize(MIB, 14)}, said)]


def test_without_the_cpus_of_the_node_set_only_memory_is_compared() -> None:
    said = snapshot(nodes("cpu-0"), [replace(waiting(7, MIB), node_cpus=16), replace(waiting(8, 0), node_cpus=16)])
    assert [line.strip()[:5] for line in lines(said, "cpu-0", cpus=None)[1:]] == ["job 7"]


def test_more_memory_holds_no_job() -> None:
    assert not lines(snapshot(nodes("cpu-0"), [waiting(7, MIB)]), "cpu-0", mib=2 * MIB)


def test_of_many_jobs_the_first_ten_are_named() -> None:
    found = lines(snapshot(nodes("cpu-0"), [waiting(number, MIB) for number in range(1, 13)]), "cpu-0")
    assert len(found) == 12
    assert found[-1] == "  and 2 more jobs"


def test_five_thousand_jobs_are_compared_with_the_kinds_of_four_thousand_nodes_and_not_with_every_node() -> None:
    said = snapshot(
        nodes(*(f"cpu-{number}" for number in range(4096))), [waiting(number, MIB * 2) for number in range(1, 5001)]
    )
    before = time.process_time()
    assert not lines(said, *said.nodes)
    assert time.process_time() - before < 1
