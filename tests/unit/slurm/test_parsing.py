"""Answers of real slurmctlds as values. `recorded/` holds it, of Slurm 24.11.5 and 26.05.5 with the same jobs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from soperator_pulumi.errors import SlurmError
from soperator_pulumi.slurm.models import Job, Node, Reservation
from soperator_pulumi.slurm.parsing import read_job_table, read_jobs, read_node_table, read_nodes, read_reservations

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = ("24.11", "26.05")


@pytest.fixture(params=VERSIONS)
def said(request: pytest.FixtureRequest) -> Callable[[str], str]:
    return lambda what: (RECORDED / str(request.param) / f"{what}.json").read_text()


@pytest.fixture
def nodes(said: Callable[[str], str]) -> dict[str, Node]:
    return {node.name: node for node in read_nodes(said("nodes"))}


@pytest.fixture
def jobs(said: Callable[[str], str]) -> dict[str, Job]:
    """By their references: names are not unique."""
    return {job.reference if "_" in job.reference else job.name: job for job in read_jobs(said("jobs"))}


@pytest.fixture
def reservations(said: Callable[[str], str]) -> dict[str, Reservation]:
    return {reservation.name: reservation for reservation in read_reservations(said("reservations"))}


def test_every_node_is_read_but_those_of_the_future(nodes: dict[str, Node]) -> None:
    assert list(nodes) == ["cpu-0", "cpu-1", "cpu-2", "cpu-3", "cpu-4", "cpu-5", "e-0", "e-1"]


@pytest.mark.parametrize(
    ("name", "joined", "drained", "busy"),
    [
        ("cpu-0", True, False, {"MIXED"}),
        ("cpu-2", True, True, {"ALLOCATED"}),
        ("cpu-3", True, False, {"COMPLETING"}),
        ("cpu-4", True, True, set()),
        ("cpu-5", True, False, set()),
        ("e-0", False, False, {"ALLOCATED", "POWERING_UP"}),
        ("e-1", False, False, set()),
    ],
)
def test_states_say_who_has_joined_is_drained_and_works(
    nodes: dict[str, Node], name: str, *, joined: bool, drained: bool, busy: set[str]
) -> None:
    node = nodes[name]
    assert (node.joined, node.drained) == (joined, drained)
    assert node.busy_state == busy


def test_reasons_are_read_without_who_and_when(nodes: dict[str, Node]) -> None:
    assert nodes["cpu-4"].reason == "bad DIMM 7"
    assert nodes["cpu-2"].reason == "soperator-pulumi hpc: scale-down 1a2b3c (was: disk)"
    assert nodes["cpu-0"].reason == ""
    assert nodes["cpu-4"].condition == "idle+drain+dynamic_norm (bad DIMM 7)"


def test_weights_and_features_are_read(nodes: dict[str, Node]) -> None:
    assert [nodes[name].weight for name in ("cpu-0", "cpu-5", "e-0")] == [1, 6, 7]
    assert nodes["e-0"].features == {"c"}


def test_the_time_of_a_table_is_read_with_it(said: Callable[[str], str]) -> None:
    for _, changed in (read_node_table(said("nodes")), read_job_table(said("jobs"))):
        assert 1795282100 < changed < 1795282200


@pytest.mark.parametrize(
    ("name", "active", "on"),
    [
        ("running", True, {"cpu-0"}),
        ("suspended", True, {"cpu-0"}),
        ("completing", True, {"cpu-3"}),
        ("configuring", True, {"e-0"}),
        ("two-nodes", True, {"cpu-1", "cpu-2"}),
        ("interactive", True, {"cpu-1"}),
        ("7_1", True, {"cpu-2"}),
        ("pending", False, set()),
        ("held", False, set()),
    ],
)
def test_a_job_is_active_as_long_as_it_holds_nodes(
    jobs: dict[str, Job], name: str, *, active: bool, on: set[str]
) -> None:
    assert jobs[name].active is active
    assert jobs[name].node_names == on


def test_a_running_job_is_read_whole(jobs: dict[str, Job]) -> None:
    job = jobs["running"]
    assert (job.job_id, job.user) == (1, "alice")
    assert job.partitions == {"main"}
    assert job.state == {"RUNNING"}
    assert job.ends_at
    assert 1795282100 + 3600 < job.ends_at < 1795282200 + 3600
    assert str(job) == "1 (alice, on cpu-0)"


@pytest.mark.parametrize("name", ["unlimited", "suspended", "pending"])
def test_jobs_without_a_limit_or_whose_time_stands_have_no_end(jobs: dict[str, Job], name: str) -> None:
    assert jobs[name].ends_at is None


def test_the_year_that_backfill_gives_to_a_job_without_a_limit_is_none(said: Callable[[str], str]) -> None:
    answer = json.loads(said("jobs"))
    job = next(job for job in answer["jobs"] if job["job_id"] == 3)
    job["time_limit"] = {"set": True, "infinite": False, "number": 525600}  # as it was seen of a backfilled one
    assert read_jobs(json.dumps({"jobs": [job]}))[0].ends_at is None


@pytest.mark.parametrize(
    ("name", "requeueable"), [("running", True), ("two-nodes", True), ("unlimited", False), ("interactive", False)]
)
def test_interactive_jobs_and_those_whose_user_said_so_cannot_be_requeued(
    jobs: dict[str, Job], name: str, *, requeueable: bool
) -> None:
    assert jobs[name].requeueable is requeueable


def test_nodes_that_a_waiting_job_asks_for_are_read(jobs: dict[str, Job]) -> None:
    assert jobs["pending"].required_nodes == {"cpu-0", "cpu-1", "cpu-2"}
    assert jobs["held"].required_nodes == frozenset()
    assert jobs["held"].partitions == {"main", "cloud"}


def number(value: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


NONE = {"set": False, "infinite": False, "number": 0}


@pytest.mark.parametrize(
    ("asked", "mib"),
    [
        ({"memory_per_node": number(1980), "cpus": number(2)}, 1980),
        ({"memory_per_node": number(0), "memory_per_cpu": NONE}, 0),  # --mem=0: all that there is
        ({"memory_per_cpu": number(900), "cpus": number(2), "minimum_cpus_per_node": number(2)}, 1800),  # -c2
        ({"memory_per_cpu": number(500), "cpus": number(4), "max_nodes": number(2)}, 1000),  # -n4 -N2-2
        ({"memory_per_cpu": number(500), "cpus": number(4), "max_nodes": number(0)}, 500),
        ({}, 0),
    ],
)
def test_the_least_memory_on_a_node_is_what_a_job_asks_for_or_its_processors_share(
    asked: dict[str, object], mib: int
) -> None:
    (job,) = read_jobs(a_job(**asked))
    assert job.node_memory_mib == mib


@pytest.mark.parametrize(
    ("asked", "cpus"),  # as Slurm 26.05 printed them for these options of sbatch
    [
        ({"cpus": number(16), "minimum_cpus_per_node": number(16), "max_nodes": number(1)}, 16),  # -c16
        ({"cpus": number(16), "minimum_cpus_per_node": number(1), "max_nodes": number(1)}, 16),  # -n16 -N1
        ({"cpus": number(16), "minimum_cpus_per_node": number(1), "max_nodes": number(16)}, 1),  # -n16
        ({"cpus": number(30), "minimum_cpus_per_node": number(1), "max_nodes": number(2)}, 15),  # -n30 -N2 --exclusive
        ({"cpus": number(32), "minimum_cpus_per_node": number(16), "max_nodes": number(2)}, 16),  # --ntasks-per-node=16
        ({"cpus": number(1), "minimum_cpus_per_node": number(16), "max_nodes": number(0)}, 16),  # --mincpus=16
        ({"cpus": number(1), "minimum_cpus_per_node": number(1), "max_nodes": number(0)}, 1),  # --exclusive
        ({}, 1),
    ],
)
def test_the_least_cpus_on_a_node_are_what_a_job_asks_for_or_its_tasks_share(
    asked: dict[str, object], cpus: int
) -> None:
    (job,) = read_jobs(a_job(**asked))
    assert job.node_cpus == cpus


def test_the_cpus_of_a_node_are_those_that_jobs_get(nodes: dict[str, Node]) -> None:
    assert nodes["cpu-0"].cpus == 4
    reserving = {"name": "cpu-0", "state": ["IDLE"], "cpus": 16, "effective_cpus": 14}
    (found,) = read_nodes(json.dumps({"nodes": [reserving]}))
    assert found.cpus == 14


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"tres_per_node": "gres/gpu:2"}, {"gpu"}),
        ({"tres_per_node": "gres:gpu:h100:2,gres:shard:4"}, {"gpu", "shard"}),
        ({"tres_per_job": "gres/gpu:h100:8"}, {"gpu"}),
        ({"tres_per_socket": "gres/gpu"}, {"gpu"}),
        ({"tres_per_task": "cpu:4,gres/gpu=1,license/x:1"}, {"gpu"}),
        ({"tres_per_node": ""}, set()),
        ({}, set()),
    ],
)
def test_the_generic_resources_that_a_job_asks_for_are_read(asked: dict[str, object], names: set[str]) -> None:
    (job,) = read_jobs(a_job(**asked))
    assert job.generic_resources == names


def test_memory_and_partitions_of_a_node_are_read(nodes: dict[str, Node]) -> None:
    assert nodes["cpu-0"].memory_mib == 1000
    assert nodes["cpu-0"].partitions == {"main"}


def test_the_number_of_nodes_of_a_waiting_job_is_read(jobs: dict[str, Job]) -> None:
    assert (jobs["pending"].node_count, jobs["held"].node_count) == (3, 1)


def test_tasks_of_an_array_and_parts_of_a_heterogeneous_job_have_their_own_references(
    said: Callable[[str], str],
) -> None:
    references = {job.job_id: job.reference for job in read_jobs(said("jobs"))}
    assert references[15] == "7_1"
    assert references[7] == "7", "the tasks that wait, in one"
    assert references[8] == references[9] == "8", "the leader's"
    assert references[1] == "1"


def test_reservations_are_read(reservations: dict[str, Reservation]) -> None:
    assert reservations["maint-7"] == Reservation(
        "maint-7", frozenset({"cpu-4", "cpu-5"}), 1798858800.0, 1798862400.0, "alice,root"
    )
    assert reservations["now"].node_names == {"cpu-5"}


def a_node(**fields: object) -> str:
    return json.dumps({"nodes": [{"name": "n", "state": ["IDLE"], **fields}]})


def test_the_reason_of_24_11_for_none_is_none() -> None:
    (node,) = read_nodes(a_node(reason="none"))
    assert node.reason == ""


@pytest.mark.parametrize(
    ("state", "drained"),
    [(["IDLE", "DRAIN"], True), (["IDLE", "FAIL"], True), (["IDLE", "DRAIN", "UNDRAIN"], False), (["DOWN"], False)],
)
def test_a_node_that_an_admin_calls_failing_is_drained(state: list[str], *, drained: bool) -> None:
    (node,) = read_nodes(a_node(state=state))
    assert node.drained is drained


def a_job(**fields: Any) -> str:
    job = {"job_id": 7, "user_name": "alice", "partition": "main", "job_state": ["RUNNING"], "nodes": "cpu-0"}
    return json.dumps({"jobs": [{**job, **fields}]})


def test_the_name_of_a_job_moves_no_cursor_and_begins_no_line() -> None:
    (job,) = read_jobs(a_job(name="a\x1b[2J\n  All nodes drained for this change are undrained: \u00e4"))
    assert job.name == "a?[2J?  All nodes drained for this change are undrained: \u00e4"


@pytest.mark.parametrize("nodes", ["cpu-0,,cpu-1", ",cpu-[0-1],", "cpu-0, cpu-1", "cpu-0 cpu-1", "cpu-[0-1],cpu-[0,1]"])
def test_a_list_of_nodes_in_a_users_own_form_is_read_as_slurm_reads_it(nodes: str) -> None:
    (job,) = read_jobs(a_job(job_state=["PENDING"], nodes="", required_nodes=nodes))
    assert job.required_nodes == {"cpu-0", "cpu-1"}


def test_a_list_of_nodes_that_cannot_be_read_is_kept_for_messages() -> None:
    (job,) = read_jobs(a_job(job_state=["PENDING"], nodes="", required_nodes="cpu-[1-0]\x1b"))
    assert (job.required_nodes, job.unreadable_nodes) == (frozenset(), "cpu-[1-0]?")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("part", ["a,", "[", "[,", " ,"])
def test_a_long_list_of_nodes_of_a_user_is_read_in_time_that_grows_with_its_length(part: str) -> None:
    """What looks ahead at every separator takes the square of it."""
    (job,) = read_jobs(a_job(job_state=["PENDING"], nodes="", required_nodes=part * 100_000))
    assert len(job.required_nodes) <= 1


TEXTS = st.one_of(
    st.text(max_size=60), st.text(alphabet='ab-0123456789[],: \t\n\x1b\x85\u2028\u202e\\"{}()%=*', max_size=40)
)
OF_USERS = (
    *("account", "admin_comment", "comment", "container", "dependency", "excluded_nodes", "extra", "features", "name"),
    *("required_nodes", "standard_error", "standard_output", "submit_line", "tres_per_job", "tres_per_node", "wckey"),
)
"""Fields of a job in which slurmctld keeps a text of its user."""


@given(st.dictionaries(st.sampled_from(OF_USERS), TEXTS, max_size=len(OF_USERS)))
@example({"required_nodes": "cpu-[0-1,]"})
@example({"required_nodes": "cpu-[1-0]"})
def test_no_text_of_a_user_keeps_jobs_from_being_read(texts: dict[str, str]) -> None:
    other = json.loads(a_job(job_id=8))["jobs"]
    job, kept = read_jobs(json.dumps({"jobs": [*json.loads(a_job(**texts))["jobs"], *other]}))
    assert (job.job_id, job.node_names, job.active) == (7, frozenset({"cpu-0"}), True)
    assert job.name.isprintable()
    assert kept == read_jobs(a_job(job_id=8))[0]


@pytest.mark.parametrize(
    ("state", "active", "pending", "ended"),
    [
        (["PENDING"], False, True, False),
        (["PENDING", "COMPLETING"], True, True, False),
        (["RUNNING", "SIGNALING"], True, False, False),
        (["RUNNING", "STAGE_OUT"], True, False, False),
        (["SUSPENDED"], True, False, False),
        (["NODE_FAIL", "COMPLETING"], True, False, True),
        (["TIMEOUT"], False, False, True),
        (["SOMETHING_NEW"], True, False, False),
    ],
)
def test_only_jobs_that_wait_or_have_ended_hold_no_node(
    state: list[str], *, active: bool, pending: bool, ended: bool
) -> None:
    (job,) = read_jobs(a_job(job_state=state))
    assert (job.active, job.pending, job.ended) == (active, pending, ended)


def test_a_list_of_nodes_that_did_not_come_whole_is_no_answer() -> None:
    with pytest.raises(SlurmError, match="not Slurm's JSON"):
        read_jobs(a_job(nodes="cpu-[0-"))
