"""Record of a worker's node in slurmctld, as slurmd is about to start."""

import pytest

from tests.unit.cluster.worker_container import CONF, OWNER, POD_START, POD_STOP, Worker


@pytest.mark.parametrize(
    ("ordinal", "weight"), [(0, 1), (1, 2), (2, 2), (3, 3), (6, 3), (7, 4), (14, 4), (511, 10), (1000, 10)]
)
def test_the_weight_of_a_node_grows_with_its_ordinal_in_bands_that_double(
    worker: Worker, ordinal: int, weight: int
) -> None:
    registers = f'{CONF} Weight={weight} State=DRAIN Reason="{POD_START}"'
    assert worker.start(ordinal)[-3:-1] == ["--conf", registers]


def test_a_record_that_says_what_the_node_is_stays_as_it_is(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    assert worker.start()[0] == "-D"
    assert worker.changes() == []


def test_features_and_weight_are_changed_in_the_record(worker: Worker) -> None:
    worker.node("IDLE+DRAIN", "disk is broken", features="cpu", weight=1)
    assert worker.start()[0] == "-D"
    changed = "update nodename=cpu-4 weight=3 availablefeatures=cpu,ib activefeatures=cpu,ib"
    assert worker.changes() == [changed]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE", ""),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: rolling-update 1a2b3c"),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: rolling-update 1a2b3c (was: disk was broken)"),
        ("DOWN*+DRAIN", f"{POD_STOP} : Not responding"),
        ("IDLE+DRAIN", POD_START),
        ("DOWN*+DYNAMIC_NORM", "Not responding"),
    ],
)
def test_a_record_with_other_cpus_is_deleted_before_slurmd_makes_it_again(
    worker: Worker, state: str, reason: str
) -> None:
    worker.node(state, reason, cpus=2)
    worker.write(reservations="ReservationName=a StartTime=x Nodes=cpu-5,cpu-40 NodeCnt=2\n", pending="\ncpu-14\n")
    assert worker.start()[0] == "-D"
    assert worker.changes() == ["delete nodename=cpu-4"]


@pytest.mark.parametrize(
    ("declared", "recorded", "changed"),
    [
        ((1, 2, 2), (1, 2, 2), False),
        ((1, 2, 2), None, True),
        ((1, 2, 2), (2, 1, 2), True),
        (None, (1, 2, 2), True),
        (None, None, False),
    ],
)
def test_a_record_with_another_layout_of_the_cpus_is_deleted_before_slurmd_makes_it_again(
    worker: Worker, declared: tuple[int, int, int] | None, recorded: tuple[int, int, int] | None, *, changed: bool
) -> None:
    if declared:
        layout = "Sockets={} CoresPerSocket={} ThreadsPerCore={}".format(*declared)
        worker.conf = CONF.replace("CPUs=4", f"CPUs=4 {layout}")
    worker.node("IDLE+DYNAMIC_NORM", layout=recorded)
    assert worker.start()[0] == "-D"
    assert worker.changes() == (["delete nodename=cpu-4"] if changed else [])


@pytest.mark.parametrize(("declared", "recorded"), [(0, 0), (1, 1), (1, 0), (0, 1), (1, 2)])
def test_a_record_with_other_reserved_cores_is_deleted_before_slurmd_makes_it_again(
    worker: Worker, declared: int, recorded: int
) -> None:
    if declared:
        worker.conf = CONF.replace("CPUs=4", f"CPUs=4 CoreSpecCount={declared}")
    worker.node("IDLE+DYNAMIC_NORM", reserved_cores=recorded)
    assert worker.start()[0] == "-D"
    assert worker.changes() == ([] if declared == recorded else ["delete nodename=cpu-4"])


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE+DRAIN", "disk is broken"),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: health 1a2b3c"),  # of a newer release
        ("IDLE+DRAIN", f"{POD_STOP} and the disk is broken"),
        ("IDLE+DRAIN", POD_STOP.replace(OWNER, "project-test.hpc")),
        ("IDLE+FAIL", POD_STOP),
        ("DOWN", "disk is broken"),
        ("DOWN*+DRAIN", "Not responding"),
    ],
)
def test_the_record_of_a_node_that_someone_took_out_of_service_is_not_deleted(
    worker: Worker, state: str, reason: str
) -> None:
    worker.node(state, reason, cpus=2)
    assert worker.start(kept=True)[0] == "-D"
    assert worker.changes() == []


@pytest.mark.parametrize(
    "names",
    [
        {"reservations": "ReservationName=a StartTime=x Nodes=cpu-3,cpu-4 NodeCnt=2\n"},
        {"pending": "\ncpu-4\n"},
        {"jobs": "cpu-4\n"},
    ],
    ids=str,
)
def test_the_record_of_a_node_that_a_reservation_or_a_job_names_is_not_deleted(
    worker: Worker, names: dict[str, str]
) -> None:
    worker.node("IDLE", cpus=2)
    worker.write(**names)
    assert worker.start(kept=True)[0] == "-D"
    assert worker.changes() == []


def test_slurmd_is_started_when_slurmctld_answers(worker: Worker) -> None:
    worker.write(answers="3")
    assert worker.start()[0] == "-D"
    assert int((worker.root / "looks").read_text()) > 4


@pytest.mark.parametrize(
    ("state", "reason", "given"),
    [
        ("MIXED", "", POD_START),
        ("MIXED", "disk was broken", POD_START),  # Slurm keeps the reason of a drain that is over
        ("DRAINING+DRAIN", "disk is broken", "disk is broken"),
    ],
)
def test_jobs_of_an_earlier_container_are_ended_and_a_drain_keeps_its_reason(
    worker: Worker, state: str, reason: str, given: str
) -> None:
    worker.node(state, reason)
    worker.write(running="7\n")
    assert worker.start()[0] == "-D"
    assert worker.changes() == [f"update nodename=cpu-4 state=down reason={given}"]


@pytest.mark.parametrize("recorded", [None, (2, 1, 2)])
def test_slurmd_registers_with_the_layout_of_a_record_that_is_kept(
    worker: Worker, recorded: tuple[int, int, int] | None
) -> None:
    worker.conf = CONF.replace("CPUs=4", "CPUs=4 Sockets=1 CoresPerSocket=2 ThreadsPerCore=2")
    worker.node("IDLE+DRAIN", "disk is broken", layout=recorded)
    sockets, cores, threads = recorded or (4, 1, 1)
    kept = f"CoresPerSocket={cores} Sockets={sockets} ThreadsPerCore={threads}"  # in the order of the record
    registers = f'Feature=cpu,ib CPUs=4 {kept} RealMemory=1024 Weight=3 State=DRAIN Reason="{POD_START}"'
    assert worker.start(kept=True)[-3:-1] == ["--conf", registers]


@pytest.mark.parametrize(("declared", "recorded"), [(1, 0), (0, 1)])
def test_slurmd_registers_with_the_reserved_cores_of_a_record_that_is_kept(
    worker: Worker, declared: int, recorded: int
) -> None:
    if declared:
        worker.conf = CONF.replace("CPUs=4", f"CPUs=4 CoreSpecCount={declared}")
    worker.node("IDLE+DRAIN", "disk is broken", reserved_cores=recorded)
    registered = worker.start(kept=True)[-2].split()
    assert ("CoreSpecCount=1" in registered) is bool(recorded)


def test_slurmd_registers_with_other_cpus_than_a_record_that_is_kept(worker: Worker) -> None:
    worker.node("IDLE+DRAIN", "disk is broken", cpus=2)
    registers = f'{CONF} Weight=3 State=DRAIN Reason="{POD_START}"'
    assert worker.start(kept=True)[-3:-1] == ["--conf", registers], "so that Slurm takes the node out of service"


@pytest.mark.parametrize("reserved_cores", [0, 1])
@pytest.mark.parametrize(
    "names", [{"jobs": "cpu-4\n"}, {"reservations": "ReservationName=a Nodes=cpu-4 NodeCnt=1\n"}, {}], ids=str
)
def test_a_record_kept_for_its_memory_alone_keeps_the_cores_of_gpus(
    worker: Worker, reserved_cores: int, names: dict[str, str]
) -> None:
    reserved = f" CoreSpecCount={reserved_cores}" if reserved_cores else ""
    worker.conf = CONF.replace("CPUs=4", f"CPUs=4{reserved}").replace("RealMemory=1024", "RealMemory=2048")
    worker.node("IDLE" if names else "IDLE+DRAIN", "" if names else "disk is broken", reserved_cores=reserved_cores)
    worker.write(**names)
    assert worker.start(kept=True)[-2].startswith(f"{worker.conf} ")
