"""A configuration change: in force everywhere, or the old files again, wherever it is interrupted."""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from soperator_pulumi.errors import ConfigRefusedError, NotReadyError, TransportError
from soperator_pulumi.kube.pods import STATE_LOST
from soperator_pulumi.operations.configuration.activations import Nothing, Sshd
from soperator_pulumi.operations.configuration.desired_files import IN_FORCE, AfterSync, DesiredFiles, LiveFiles, Reader
from soperator_pulumi.operations.configuration.slurmctld import Slurmctld
from soperator_pulumi.operations.configuration.transaction import Activation, Transaction
from soperator_pulumi.render.layout import NODE_GRES
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.objects import NAMESPACE, PODS, SELECTOR, KilledError
from tests.fakes.slurmctld import Job, Record
from tests.fakes.small_world import FakeTransport, SmallWorld

BASE = "ClusterName=hpc\nSlurmctldPort=6817\nStateSaveLocation=/s\nSlurmctldPidFile=/p\n"
OLD = {"slurm.conf": f"{BASE}KillWait=30\n"}
NEW = {"slurm.conf": f"{BASE}KillWait=60\n"}
CONTROLLER = Reader(component="controller", container="slurmctld")


def slurm_files(files: Mapping[str, str]) -> DesiredFiles:
    return wanted("slurm-config", files, [CONTROLLER], AfterSync.SLURM)


def wanted(
    name: str, files: Mapping[str, str], readers: list[Reader], after_sync: AfterSync = AfterSync.NOTHING
) -> DesiredFiles:
    return DesiredFiles(
        namespace=NAMESPACE,
        name=name,
        labels={"team": "hpc"},
        annotations={},
        files=dict(files),
        selector=SELECTOR,
        readers=tuple(readers),
        after_sync=after_sync,
    )


def put(world: SmallWorld, desired: DesiredFiles, known_good: Mapping[str, str] | None = None) -> None:
    activations: dict[AfterSync, Activation] = {
        AfterSync.NOTHING: Nothing(),
        AfterSync.SLURM: Slurmctld(world, NAMESPACE, SELECTOR, world.reported.append, world.clock),
        AfterSync.SSHD: Sshd(world, NAMESPACE, SELECTOR),
    }
    Transaction(world, activations, world.reported.append, world.clock).put(desired, known_good)


def in_force(world: SmallWorld, desired: DesiredFiles) -> bool:
    return LiveFiles(world.objects[desired.path]).is_as(desired)


@pytest.fixture
def world() -> SmallWorld:
    """A cluster whose slurmctld runs on the old files."""
    world = SmallWorld()
    put(world, slurm_files(OLD))
    world.add_pod("controller-0", "controller")
    return world


def test_files_of_a_new_cluster_are_in_force_without_asking_anybody() -> None:
    world = SmallWorld()
    put(world, slurm_files(OLD))
    assert in_force(world, slurm_files(OLD))
    assert world.commands == []
    assert world.clock.time == 0


def test_a_change_reaches_slurmctld_and_is_marked_as_in_force(world: SmallWorld) -> None:
    put(world, slurm_files(NEW), OLD)
    assert world.runs_on == NEW
    assert in_force(world, slurm_files(NEW))


def test_changed_labels_of_files_in_force_are_written_and_nothing_reads_the_files_again(world: SmallWorld) -> None:
    labeled = slurm_files(OLD).model_copy(update={"labels": {"team": "ai"}})

    put(world, labeled, OLD)

    assert in_force(world, labeled)
    assert world.commands == []


def test_new_files_are_tried_before_anything_is_changed(world: SmallWorld) -> None:
    before = dict(world.objects)
    world.trial = lambda files: "slurmctld: fatal: no such plugin" if "KillWait=60" in files["slurm.conf"] else ""
    with pytest.raises(ConfigRefusedError, match="Nothing was changed:\nslurmctld: fatal: no such plugin"):
        put(world, slurm_files(NEW), OLD)
    assert world.objects == before
    assert world.runs_on == OLD


def test_when_slurmctld_dies_of_new_files_it_runs_on_the_old_ones_again(world: SmallWorld) -> None:
    world.refuses = lambda files: files == NEW
    with pytest.raises(ConfigRefusedError, match="fatal: no such plugin") as raised:
        put(world, slurm_files(NEW), OLD)
    assert "The old files are in effect again." in str(raised.value)
    assert world.runs_on == OLD
    assert in_force(world, slurm_files(OLD))


def test_a_refusal_without_any_earlier_files_says_so() -> None:
    world = SmallWorld()
    world.refuses = lambda _files: True
    world.objects[slurm_files(NEW).path] = slurm_files(OLD).manifest(in_force=False)
    world.add_pod("controller-0", "controller")
    with pytest.raises(ConfigRefusedError, match="No earlier configuration is known"):
        put(world, slurm_files(NEW))


def test_a_refusal_after_an_interrupted_change_goes_back_to_the_last_files_that_went_well(world: SmallWorld) -> None:
    interrupted = {"slurm.conf": f"{BASE}KillWait=45\n"}
    world.objects[slurm_files(OLD).path] = slurm_files(interrupted).manifest(in_force=False)
    world.refuses = lambda files: files != OLD
    with pytest.raises(ConfigRefusedError):
        put(world, slurm_files(NEW), known_good=OLD)
    assert world.runs_on == OLD


def test_when_restoring_fails_as_well_both_reasons_are_reported(world: SmallWorld) -> None:
    world.refuses = lambda _files: True
    with pytest.raises(ConfigRefusedError, match="Restoring the old files failed as well"):
        put(world, slurm_files(NEW), OLD)
    assert not in_force(world, slurm_files(OLD)), "the next run sees that there is something to do"


@pytest.mark.parametrize("survived_calls", range(20))
@pytest.mark.parametrize("then", [NEW, OLD], ids=["again", "reverted"])
def test_a_run_after_one_that_was_killed_at_any_call_brings_its_own_files_into_force(
    world: SmallWorld, survived_calls: int, then: Mapping[str, str]
) -> None:
    world.calls_left = survived_calls
    with contextlib.suppress(KilledError):
        put(world, slurm_files(NEW), OLD)
    world.calls_left = None
    put(world, slurm_files(then), OLD)
    assert world.runs_on == then
    assert in_force(world, slurm_files(then))


@pytest.mark.parametrize("survived_calls", range(30))
def test_a_restore_that_is_killed_at_any_call_is_completed_by_the_next_run(
    world: SmallWorld, survived_calls: int
) -> None:
    world.refuses = lambda files: files == NEW
    world.calls_left = survived_calls
    with pytest.raises((KilledError, ConfigRefusedError)):
        put(world, slurm_files(NEW), OLD)
    world.calls_left = None
    put(world, slurm_files(OLD), OLD)
    assert world.runs_on == OLD
    assert in_force(world, slurm_files(OLD))


def test_a_slurmctld_that_is_down_is_restarted_on_the_new_files(world: SmallWorld) -> None:
    world.add_pod("controller-0", "controller", "crashed")
    put(world, slurm_files(NEW), OLD)
    assert any("restarting slurmctld (it is down)" in line for line in world.reported)
    assert LiveFiles(world.objects[slurm_files(NEW).path]).in_force
    assert world.files["controller-0"]["slurm-config"] == NEW


def test_a_parameter_that_only_a_restart_brings_into_force_restarts_slurmctld(world: SmallWorld) -> None:
    changed = {"slurm.conf": OLD["slurm.conf"] + "CommunicationParameters=EnableIPv6\n"}
    put(world, slurm_files(changed), OLD)
    assert world.runs_on == changed
    assert "scontrol reconfigure" not in world.commands
    assert world.reported == ["restarting slurmctld (for CommunicationParameters); jobs continue"]


def prepared_at_each_start(world: SmallWorld) -> list[set[str]]:
    """Return a list that gets the pods with the included file at each start and trial start of slurmctld."""
    seen: list[set[str]] = []

    def trial(_files: Mapping[str, str]) -> str:
        seen.append({*world.included})
        return ""

    world.trial = trial
    return seen


@pytest.mark.parametrize("more", ["", "CommunicationParameters=EnableIPv6\n"], ids=["reconfigured", "restarted"])
def test_the_controller_of_a_release_before_gpus_gets_the_file_that_gres_conf_includes(
    world: SmallWorld, more: str
) -> None:
    with_gpus = {"slurm.conf": f"{NEW['slurm.conf']}GresTypes=gpu\n{more}", "gres.conf": f"Include {NODE_GRES}\n"}
    tried = prepared_at_each_start(world)
    put(world, slurm_files(with_gpus), OLD)
    assert tried[0] == {"controller-0"}, "slurmctld would wait a minute for the file, and end"
    assert world.included == {"controller-0"}
    assert world.runs_on == with_gpus


WITH_GPUS = {"slurm.conf": f"{BASE}GresTypes=gpu\n", "gres.conf": f"Include {NODE_GRES}\n"}


def test_all_workers_of_a_release_before_gpus_get_the_file_before_they_look_for_it(world: SmallWorld) -> None:
    for name, state in (("cpu-0", "running"), ("cpu-1", "running"), ("cpu-2", "creating")):
        world.add_pod(name, "worker", state)
    seen = prepared_at_each_start(world)
    put(world, slurm_files(WITH_GPUS), OLD)
    assert seen[-1] == {"controller-0", "cpu-0", "cpu-1"}, "slurmd would end, and its jobs with it"
    world.included.clear()
    put(world, slurm_files({**WITH_GPUS, "slurm.conf": f"{BASE}GresTypes=gpu\nKillWait=60\n"}), WITH_GPUS)
    assert world.included == {"controller-0"}, "pods that have read the file have it"


def test_a_worker_that_cannot_get_the_file_keeps_its_jobs(world: SmallWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add_pod("cpu-0", "worker")
    run = FakeTransport.run

    def lost(transport: FakeTransport, command: Sequence[str], **more: Any) -> Answer:
        if transport.pod == "cpu-0":
            raise TransportError("the machine is away.")
        return run(transport, command, **more)

    monkeypatch.setattr(FakeTransport, "run", lost)
    with pytest.raises(ConfigRefusedError, match=r"pod cpu-0, whose slurmd would end with its jobs: the machine is"):
        put(world, slurm_files(WITH_GPUS), OLD)
    assert world.runs_on == OLD


@pytest.mark.parametrize(
    ("gres", "state", "refused"),
    [("gpu:h100:4(S:0,1),shard:h100:8", "RUNNING", True), ("", "RUNNING", False), ("gpu:4", "COMPLETED", False)],
)
def test_gpus_are_not_removed_while_jobs_are_on_their_nodes(
    world: SmallWorld, gres: str, state: str, *, refused: bool
) -> None:
    """Without them in Slurm's files a job opens the GPUs of others."""
    put(world, slurm_files(WITH_GPUS), OLD)
    world.slurm.nodes["cpu-0"] = Record("cpu-0", gres=gres)
    world.slurm.jobs[7] = a_job("main", state)
    if refused:
        with pytest.raises(ConfigRefusedError, match=r"Jobs would lose their GPUs:\n  GresTypes: (.|\n)*7 \(alice"):
            put(world, slurm_files(NEW), WITH_GPUS)
    else:
        put(world, slurm_files(NEW), WITH_GPUS)
    assert world.runs_on == (WITH_GPUS if refused else NEW)


BY_CGROUPS = {"slurm.conf": f"{BASE}ProctrackType=proctrack/cgroup\n"}


def test_jobs_are_not_constrained_while_there_are_workers_in_which_slurmd_would_end(world: SmallWorld) -> None:
    """Pods of an earlier version; later ones are the same with both values of the setting."""
    put(world, slurm_files(OLD))
    world.add_pod("cpu-0", "worker")
    with pytest.raises(ConfigRefusedError, match=r"this package: cpu-0\.\nNothing was changed\. Run `up` with the old"):
        put(world, slurm_files(BY_CGROUPS), OLD)
    assert world.runs_on == OLD


def test_jobs_are_constrained_where_all_workers_can_do_it(world: SmallWorld) -> None:
    put(world, slurm_files(OLD))
    worker = world.add_pod("cpu-0", "worker")
    worker["spec"]["containers"][0]["securityContext"] = {"capabilities": {"add": ["SYS_ADMIN", "SYS_NICE"]}}
    put(world, slurm_files(BY_CGROUPS), OLD)
    assert world.runs_on == BY_CGROUPS


def a_job(partition: str, state: str = "RUNNING") -> Job:
    return Job(7, partition=partition, state=state, nodes=("cpu-0",))


MAIN = {"slurm.conf": OLD["slurm.conf"] + "PartitionName=main Nodes=ALL\n"}
MAIN_AND_GPU = {"slurm.conf": MAIN["slurm.conf"] + "PartitionName=gpu Nodes=ALL\n"}


@pytest.fixture
def world_of_two_partitions() -> SmallWorld:
    world = SmallWorld()
    put(world, slurm_files(MAIN_AND_GPU))
    world.add_pod("controller-0", "controller")
    return world


@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
def test_a_partition_is_not_removed_while_it_has_jobs(world_of_two_partitions: SmallWorld, state: str) -> None:
    world_of_two_partitions.slurm.jobs[7] = a_job("gpu", state)
    with pytest.raises(ConfigRefusedError, match=r"PartitionName=gpu.*\n.*7 \(alice, on cpu-0\)"):
        put(world_of_two_partitions, slurm_files(MAIN), MAIN_AND_GPU)
    assert world_of_two_partitions.runs_on == MAIN_AND_GPU


def test_a_job_that_comes_to_a_partition_while_its_removal_is_under_way_keeps_it(
    world_of_two_partitions: SmallWorld,
) -> None:
    """It is looked for once more when the files are there, up to three minutes later."""
    world = world_of_two_partitions
    world.kubelet_seconds = 60
    world.clock.after(30, lambda: world.slurm.jobs.update({7: a_job("gpu", "PENDING")}))
    with pytest.raises(ConfigRefusedError, match=r"PartitionName=gpu.*\n.*7 \(alice, on cpu-0\)") as refused:
        put(world, slurm_files(MAIN), MAIN_AND_GPU)
    assert "The old files are in effect again." in str(refused.value)
    assert world.runs_on == MAIN_AND_GPU
    assert in_force(world, slurm_files(MAIN_AND_GPU))


@pytest.mark.parametrize("job", [a_job("main"), a_job("gpu", "COMPLETED")])
def test_a_partition_without_jobs_is_removed(world_of_two_partitions: SmallWorld, job: Job) -> None:
    world_of_two_partitions.slurm.jobs[7] = job
    put(world_of_two_partitions, slurm_files(MAIN), MAIN_AND_GPU)
    assert world_of_two_partitions.runs_on == MAIN


def test_what_may_lose_jobs_is_refused_when_no_one_can_say_whether_there_are_any(
    world_of_two_partitions: SmallWorld,
) -> None:
    world_of_two_partitions.unreachable = True
    with pytest.raises(ConfigRefusedError, match="running jobs are unknown"):
        put(world_of_two_partitions, slurm_files(MAIN), MAIN_AND_GPU)


def test_what_a_running_cluster_cannot_take_is_refused_with_the_reason(world: SmallWorld) -> None:
    renamed = {"slurm.conf": OLD["slurm.conf"].replace("ClusterName=hpc", "ClusterName=other")}
    with pytest.raises(ConfigRefusedError, match=r"ClusterName: .*CLUSTER NAME MISMATCH"):
        put(world, slurm_files(renamed), OLD)
    assert world.runs_on == OLD


def test_a_kubelet_that_is_slow_is_asked_again_and_waited_for(world: SmallWorld) -> None:
    world.kubelet_seconds = 40
    put(world, slurm_files(NEW), OLD)
    assert world.runs_on == NEW
    assert any("waits for its files in controller-0" in line for line in world.reported)


def test_a_kubelet_that_never_syncs_ends_the_wait_with_what_to_look_at(world: SmallWorld) -> None:
    world.kubelet_seconds = 10_000
    with pytest.raises(NotReadyError, match=r"not in pod hpc/controller-0 after 180 s\. Check its machine's kubelet"):
        put(world, slurm_files(NEW), OLD)
    assert world.runs_on == OLD
    assert not in_force(world, slurm_files(NEW))


def test_a_controller_that_waits_for_a_machine_is_not_waited_for(world: SmallWorld) -> None:
    world.add_pod("controller-0", "controller", "unschedulable")
    put(world, slurm_files(NEW), OLD)
    assert in_force(world, slurm_files(NEW))
    assert world.clock.time < 1
    assert any("It reads the files when it starts" in line for line in world.reported)


def test_files_are_taken_while_slurmctld_refuses_a_lost_state_as_the_next_template_may_accept_it(
    world: SmallWorld,
) -> None:
    pod = world.add_pod("controller-0", "controller", "crashed")
    pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] = STATE_LOST
    put(world, slurm_files(NEW), OLD)
    assert in_force(world, slurm_files(NEW))
    assert f"{PODS}/controller-0" in world.objects
    assert any("It reads the files when it starts" in line for line in world.reported)


def test_a_controller_that_is_starting_is_waited_for_and_told(world: SmallWorld) -> None:
    world.add_pod("controller-0", "controller", "creating")
    world.clock.after(5, world._controller_returns)
    put(world, slurm_files(NEW), OLD)
    assert world.runs_on == NEW


def test_new_users_are_waited_for_where_they_log_in_and_where_jobs_are_checked() -> None:
    world = SmallWorld()
    readers = [
        CONTROLLER,
        Reader(component="login", container="sshd"),
        Reader(component="worker", container="slurmd", verified=False),
    ]
    put(world, wanted("users", {"passwd": "alice"}, readers))
    for name, component in (("controller-0", "controller"), ("login-0", "login"), ("cpu-0", "worker")):
        world.add_pod(name, component)
    put(world, wanted("users", {"passwd": "alice bob"}, readers))
    assert world.files["controller-0"]["users"] == world.files["login-0"]["users"] == {"passwd": "alice bob"}
    assert "soperator-pulumi/sync" in world.objects[f"{PODS}/cpu-0"]["metadata"]["annotations"]
    assert not any(command.startswith("scontrol") for command in world.commands), "nothing is reconfigured"


def test_files_that_a_program_makes_ready_are_waited_for_by_what_it_says_of_them() -> None:
    world = SmallWorld()
    readers = [Reader(component="login", container="sshd", sums="/users/declared.sha256")]
    put(world, wanted("users", {"passwd": "alice"}, readers))
    pod = world.add_pod("login-0", "login")
    pod["spec"]["containers"][0]["volumeMounts"] = []
    world.made_ready["login-0"] = "0123  passwd\n"
    new = hashlib.sha256(b"alice bob").hexdigest()
    world.clock.after(4, lambda: world.made_ready.update({"login-0": f"{new}  passwd\n"}))
    put(world, wanted("users", {"passwd": "alice bob"}, readers))
    assert 4 <= world.clock.time < 6
    assert world.commands[-1] == "cat /users/declared.sha256"


def test_a_file_that_was_removed_is_waited_for_as_well() -> None:
    world = SmallWorld()
    reader = [Reader(component="login", container="sshd")]
    put(world, wanted("ssh-keys", {"alice": "key", "bob": "key"}, reader))
    world.add_pod("login-0", "login")
    put(world, wanted("ssh-keys", {"alice": "key"}, reader))
    assert world.files["login-0"]["ssh-keys"] == {"alice": "key"}


def test_pods_that_do_not_mount_the_files_are_not_waited_for() -> None:
    world = SmallWorld()
    world.add_pod("controller-0", "controller")
    put(world, wanted("ssh-keys", {"alice": "key"}, [CONTROLLER]))
    assert world.commands == []


def test_pods_that_are_going_are_not_waited_for(world: SmallWorld) -> None:
    world.objects[f"{PODS}/controller-0"]["metadata"]["deletionTimestamp"] = "now"
    world.clock.after(3, world._controller_returns)
    put(world, slurm_files(NEW), OLD)
    assert world.runs_on == NEW


SSHD = [Reader(component="login", container="sshd")]


def test_sshd_starts_again_on_a_file_that_it_has_checked() -> None:
    world = SmallWorld()
    put(world, wanted("sshd-config", {"sshd_config": "Port 2222"}, SSHD, AfterSync.SSHD))
    world.add_pod("login-0", "login")
    world.add_pod("login-1", "login")
    put(world, wanted("sshd-config", {"sshd_config": "Port 2222\nUseDNS no"}, SSHD, AfterSync.SSHD))
    assert sum("pkill -HUP" in command for command in world.commands) == 2
    assert sum("sshd -t" in command for command in world.commands) == 1


def test_a_file_that_sshd_refuses_is_never_in_place() -> None:
    world = SmallWorld()
    good = wanted("sshd-config", {"sshd_config": "Port 2222"}, SSHD, AfterSync.SSHD)
    put(world, good)
    world.add_pod("login-0", "login")
    world.sshd_words = "Bad configuration option: Bogus"
    with pytest.raises(ConfigRefusedError, match="Nothing was changed:\nBad configuration option: Bogus"):
        put(world, wanted("sshd-config", {"sshd_config": "Bogus yes"}, SSHD, AfterSync.SSHD))
    assert in_force(world, good)


def test_the_mark_is_taken_off_while_a_change_is_under_way(world: SmallWorld) -> None:
    world.kubelet_seconds = 10_000
    with pytest.raises(NotReadyError):
        put(world, slurm_files(NEW), OLD)
    assert IN_FORCE not in world.objects[slurm_files(NEW).path]["metadata"]["annotations"]


def test_a_look_at_jobs_pauses_by_the_clock_that_a_cancel_ends(
    world: SmallWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_pod("controller-0", "controller")

    def lost(_transport: FakeTransport, *_arguments: object, **_more: object) -> Answer:
        raise TransportError("the connection broke")

    slurmctld = Slurmctld(world, NAMESPACE, SELECTOR, world.reported.append, world.clock)
    monkeypatch.setattr(FakeTransport, "run", lost)
    with pytest.raises(TransportError):
        slurmctld.refusal(MAIN_AND_GPU, MAIN)
    assert world.clock.time == 4


@pytest.mark.parametrize("reads", [True, False], ids=["this version", "an earlier version"])
def test_tokens_are_for_a_controller_that_can_read_them(world: SmallWorld, *, reads: bool) -> None:
    with_tokens = {"slurm.conf": f"{BASE}AuthAltTypes=auth/jwt\n"}
    world.answers["ls /run/slurm/jwt.key"] = Answer(0 if reads else 2, "", "")
    if reads:
        put(world, slurm_files(with_tokens), OLD)
    else:
        with pytest.raises(ConfigRefusedError, match="Run `up` without `rest` first, with the images of this version"):
            put(world, slurm_files(with_tokens), OLD)
    assert world.runs_on == (with_tokens if reads else OLD)
