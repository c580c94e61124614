"""Where a job can't enter the jail, it does not run at all: nothing of a user ever runs on a worker's own root."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from kubernetes import client

from tests.cluster import busybox
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, deployed, unique
from tests.cluster.workers import NO_TIME, job_on, set_size
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = pytest.mark.cluster

MARKER = "/home/alice/ran"
"""First file of every program of the user. A worker has /home too, so it would appear wherever the program runs."""

PROGRAMS = (f"/usr/bin/touch {MARKER}.0", "/home/alice/script", f"/home/alice/busybox touch {MARKER}.2")
"""Of the jail, a script in the home, and a static program in the home, which needs nothing of any root."""

RELEASE = "grep VERSION_CODENAME /etc/os-release"

PLUGSTACK = "/var/spool/slurmd/conf-cache/plugstack.conf"
PLUGIN = "/opt/slurm/lib/slurm/spank_jail.so"


@pytest.fixture(scope="module")
def breakable(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster of one node, to be broken and mended."""
    cluster = a_cluster(
        name=unique("breakable"),
        node_sets=[a_node_set("cpu")],
        jail=a_jail(JAIL, submounts=[{"path": "/data", "scratch_gib": 1}]),
    )
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("breakable"), cluster)) as slurm:
        slurm.ssh("base64 --decode > busybox && chmod +x busybox", stdin=base64.b64encode(busybox.program()).decode())
        slurm.ssh("cat > programs", stdin="".join(f"{n} {program}\n" for n, program in enumerate(PROGRAMS)))
        slurm.ssh("cat > script && chmod +x script", stdin=f"#!/bin/sh\n: > {MARKER}.1\nexec cat /etc/os-release\n")
        yield slurm


@dataclass(frozen=True)
class Fault:
    """A way in which entering the jail fails, and the end of it; both are run as root in the worker's container."""

    make: str
    mend: str
    says: str = "jail"
    """A word of what the user is told, or of the node's reason."""


def on_worker(slurm: Slurm, script: str) -> str:
    return slurm.exec("cpu-0", "slurmd", "sh", "-ec", script)


TREE = "/jail/$(readlink /jail/active)"

FAULTS = {
    "no tree is active": Fault("mv -T /jail/active /jail/off", "mv -T /jail/off /jail/active", "active"),
    "the active tree is gone": Fault(f"mv {TREE} /jail/off", f"mv /jail/off {TREE}", "jail"),
    "the claim is not mounted": Fault("umount -l /jail", "", "active"),
    "a source of a mount is missing": Fault(
        f"cp {PLUGSTACK} /run/slurm/kept; sed -i 's|^required.*|& bind=/nowhere|' {PLUGSTACK}",
        f"cp /run/slurm/kept {PLUGSTACK}",
        "/nowhere",
    ),
    "a file lies where a submount goes": Fault(
        f"rmdir {TREE}/data; : > {TREE}/data", f"rm {TREE}/data; mkdir {TREE}/data", "/data"
    ),
    "a link leads in a circle where a submount goes": Fault(
        f"rmdir {TREE}/data; ln -s data {TREE}/data", f"rm {TREE}/data; mkdir {TREE}/data", "/data"
    ),
    "the plugin's line has an unknown word": Fault(
        f"cp {PLUGSTACK} /run/slurm/kept; sed -i 's|^required.*|& colour=blue|' {PLUGSTACK}",
        f"cp /run/slurm/kept {PLUGSTACK}",
        "colour",
    ),
    "the plugin's line names no jail": Fault(
        f"cp {PLUGSTACK} /run/slurm/kept; sed -i 's|jail=/jail||' {PLUGSTACK}", f"cp /run/slurm/kept {PLUGSTACK}"
    ),
    "the plugin's line is broken": Fault(
        f"cp {PLUGSTACK} /run/slurm/kept; echo 'required' > {PLUGSTACK}", f"cp /run/slurm/kept {PLUGSTACK}", ""
    ),
    "the plugin is not there": Fault("mount -t tmpfs none /opt/slurm/lib/slurm", "umount /opt/slurm/lib/slurm", ""),
    "the file of plugins is empty": Fault(
        f"cp {PLUGSTACK} /run/slurm/kept; : > {PLUGSTACK}", f"cp /run/slurm/kept {PLUGSTACK}", ""
    ),
    "the file of plugins is gone": Fault(f"mv {PLUGSTACK} /run/slurm/kept", f"cp /run/slurm/kept {PLUGSTACK}", ""),
    "the plugin is optional": Fault(
        f"cp {PLUGSTACK} /run/slurm/kept; echo 'optional {PLUGIN} jail=/nowhere' > {PLUGSTACK}",
        f"cp /run/slurm/kept {PLUGSTACK}",
        "",
    ),
}


def run(slurm: Slurm, command: str) -> tuple[str, list[str]]:
    """Run a command at the login; return all that was said, and the markers of the user's programs that ran."""
    script = f"rm -f {MARKER}*; {command}; echo; ls -d {MARKER}* | tr '\\n' ' '"
    said, _, markers = slurm.ssh(f"({script}) 2>/dev/stdout", check=False, timeout_seconds=90).stdout.rpartition("\n")
    return said, [marker for marker in markers.split() if marker.startswith(f"{MARKER}.")]


def run_all_programs(slurm: Slurm) -> tuple[str, list[str]]:
    """Run a task of each kind of program."""
    return run(slurm, f"timeout 60 srun --immediate=50 -n{len(PROGRAMS)} --overcommit --multi-prog programs")


def run_batch(slurm: Slurm) -> list[str]:
    """Let a batch job start, wait until Slurm has given it up, and return the markers."""
    slurm.ssh(f"rm -f {MARKER}*")
    job = slurm.submit(PROGRAMS[0], options="-o /dev/null")

    def is_given_up() -> bool:
        state = slurm.job(job)
        held = state["JobState"] == "PENDING" and ("DRAIN" in slurm.node_state("cpu-0") or "held" in state["Reason"])
        return held or state["JobState"] not in {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"}

    wait_until(is_given_up, what="the batch job has ended")
    return slurm.ssh(f"scancel {job} 2>/dev/null; ls -d {MARKER}* 2>/dev/null; true").stdout.split()


def await_the_end_of_jobs(slurm: Slurm) -> None:
    wait_until(lambda: "COMPLETING" not in slurm.node_state("cpu-0"), what="the node has no job")


def revive(slurm: Slurm) -> None:
    """Put the node back to work, as an admin does after the repair."""
    await_the_end_of_jobs(slurm)
    if {"DRAIN", "DOWN"} & set(slurm.node_state("cpu-0").split("+")):
        slurm.scontrol("update", "nodename=cpu-0", "state=resume")
    wait_until(lambda: is_idle(slurm), what="the node is idle")


def is_idle(slurm: Slurm) -> bool:
    state = slurm.node_state("cpu-0")
    return state.startswith("IDLE") and not {"DRAIN", "COMPLETING", "NOT_RESPONDING"} & set(state.split("+"))


def replace_worker(slurm: Slurm) -> None:
    await_the_end_of_jobs(slurm)  # a pod that is killed while one completes keeps slurmctld waiting for two minutes
    before = slurm.api.read_namespaced_pod("cpu-0", slurm.namespace).metadata.uid
    slurm.api.delete_namespaced_pod("cpu-0", slurm.namespace, grace_period_seconds=0)

    def is_back() -> bool:
        pods = slurm.api.list_namespaced_pod(slurm.namespace, field_selector="metadata.name=cpu-0").items
        return any(
            pod.metadata.uid != before
            and any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or [])
            for pod in pods
        )

    wait_until(is_back, what="the worker is back", timeout_seconds=120)


@contextmanager
def broken(slurm: Slurm, fault: Fault) -> Iterator[None]:
    on_worker(slurm, fault.make)
    try:
        yield
    finally:
        if fault.mend:
            on_worker(slurm, fault.mend)
        else:
            replace_worker(slurm)
        revive(slurm)


def test_the_markers_appear_where_all_is_well(breakable: Slurm) -> None:
    """Otherwise their absence would show nothing."""
    assert run_all_programs(breakable)[1] == [f"{MARKER}.{number}" for number in range(len(PROGRAMS))]
    assert run_batch(breakable) == [f"{MARKER}.0"]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_nothing_runs_when(breakable: Slurm, fault: Fault) -> None:
    with broken(breakable, fault):
        said, markers = run_all_programs(breakable)
        said += breakable.scontrol("show", "node", "cpu-0")

    assert markers == []
    assert fault.says in said, said


@pytest.mark.parametrize("name", ["no tree is active", "the plugin is not there", "the file of plugins is empty"])
def test_no_batch_script_runs_when(breakable: Slurm, name: str) -> None:
    with broken(breakable, FAULTS[name]):
        markers = run_batch(breakable)

    assert markers == []


def test_a_link_that_root_has_planted_leads_no_mount_out(breakable: Slurm) -> None:
    """The folder on which a submount is laid becomes a link: seen from outside, it leads to the worker's own files."""
    link = Fault(f"rmdir {TREE}/data; ln -s ../../../../../../run {TREE}/data", f"rm {TREE}/data; mkdir {TREE}/data")
    with broken(breakable, link):
        run_all_programs(breakable)
        there = on_worker(breakable, "ls /run/munge; grep -c ' /run/munge ' /proc/self/mountinfo")

    assert there.split() == ["jobs", "munge.socket.2", "munge.socket.2.lock", "1"]


@pytest.mark.parametrize("option", ["--task-epilog", "--task-prolog"])
@pytest.mark.parametrize("program", PROGRAMS[1:])
def test_programs_of_a_task_run_in_the_jail_or_not_at_all(breakable: Slurm, option: str, program: str) -> None:
    """Slurm starts the epilog that a user names where slurmstepd is, outside of the plugin's hooks."""
    breakable.ssh("cat > around && chmod +x around", stdin=f"#!/home/alice/busybox sh\n/home/alice/busybox {RELEASE}\n")
    breakable.ssh(f"rm -f {MARKER}*")

    command = program.split(maxsplit=1)[0]
    said, markers = run(breakable, f"srun {option}={command} true; srun {option}=/home/alice/around true")

    assert "trixie" not in said
    assert option == "--task-prolog" or markers == []


def test_the_environment_of_a_login_shell_is_not_made_on_the_worker(breakable: Slurm) -> None:
    """`sbatch --get-user-env` starts the user's shell, and with it his profile, where slurmd is."""
    breakable.ssh("cat > .profile", stdin=f": > {MARKER}.profile\n")
    try:
        _, markers = run(breakable, "timeout 60 sbatch --wait --get-user-env -o /dev/null --wrap true")
    finally:
        breakable.ssh("rm .profile")

    assert markers == []


def test_a_parameter_that_turns_the_plugin_off_runs_nothing(breakable: Slurm) -> None:
    """With PlugStackConfig in slurm.conf, nodes that fetch their configuration ignore plugstack.conf without a word.

    The specification refuses it; here an admin puts it into the file by hand.
    """
    before = breakable.api.read_namespaced_config_map("slurm-config", breakable.namespace).data["slurm.conf"]

    def configure(content: str) -> None:
        patch = {"data": {"slurm.conf": content}}
        breakable.api.patch_namespaced_config_map("slurm-config", breakable.namespace, patch)
        # An annotation makes the kubelet sync the pod's volumes at once.
        note = {"metadata": {"annotations": {"tests/sync": str(len(content))}}}
        breakable.api.patch_namespaced_pod("controller-0", breakable.namespace, note)
        there = ("controller-0", "slurmctld", "cat", "/etc/slurm-config/slurm.conf")
        wait_until(lambda: breakable.exec(*there) == content, what="slurmctld's file is the new one")
        breakable.scontrol("reconfigure")
        wait_until(
            lambda: (
                ("PlugStackConfig" in on_worker(breakable, "cat /var/spool/slurmd/conf-cache/slurm.conf"))
                == ("PlugStackConfig" in content)
            ),
            what="the worker's file is the new one",
        )

    configure(f"{before}PlugStackConfig=/etc/slurm/plugstack.conf\n")
    try:
        _, markers = run_all_programs(breakable)
    finally:
        configure(before)
        revive(breakable)

    assert markers == []


def test_the_user_is_told_the_step_and_the_reason_and_the_node_is_drained(breakable: Slurm) -> None:
    with broken(breakable, FAULTS["no tree is active"]):
        said, _ = run(breakable, "timeout 15 srun --immediate=10 true")
        wait_until(lambda: "DRAIN" in breakable.node_state("cpu-0"), what="the node is drained")
        reason = breakable.scontrol("show", "node", "cpu-0")

    assert "No such file or directory" in said
    assert "jail: " in said
    assert "Reason=jail: " in reason


def test_a_full_volume_of_the_jail_fails_the_job_and_drains_no_node(breakable: Slurm) -> None:
    full = Fault("mount -t tmpfs -o nr_inodes=1 full /jail/jobs", "umount /jail/jobs")
    with broken(breakable, full):
        said, markers = run_all_programs(breakable)
        state = breakable.node_state("cpu-0")

    assert "jail: record the job's tree" in said
    assert "No space left on device" in said
    assert markers == []
    assert "DRAIN" not in state


def test_a_full_home_fails_the_job_and_drains_no_node(breakable: Slurm) -> None:
    """Slurm itself makes the output file, before any hook of the plugin."""
    folder = "/home/alice/full"
    breakable.ssh(f"mkdir {folder}")
    with broken(breakable, Fault(f"mount -t tmpfs -o nr_inodes=1,mode=1777 full {folder}", f"umount {folder}")):
        job = breakable.submit("true", options=f"-o {folder}/output")
        breakable.wait_for_job(job, "FAILED")
        state = breakable.node_state("cpu-0")

    assert "DRAIN" not in state


def test_a_submount_that_a_pod_has_not_got_yet_drains_no_node(breakable: Slurm) -> None:
    """A worker is not replaced under a job, so the new description finds a pod of before: a node binds what its own
    pod has."""
    job = job_on(breakable, "cpu-0")
    breakable.cluster["jail"]["submounts"].append({"path": "/mnt/more", "scratch_gib": 1})
    set_size(breakable, 1, **NO_TIME)
    with pytest.raises(DeployError, match=f"job {job}"):
        breakable.up()
    breakable.ssh(f"scancel {job}")
    wait_until(lambda: is_idle(breakable), "the node is idle")

    assert run_all_programs(breakable)[1] != []
    assert "DRAIN" not in breakable.node_state("cpu-0")
    breakable.up()
    assert breakable.ssh("srun stat --format %a /mnt/more").stdout == "1777\n"


def test_a_worker_without_the_right_to_mount_does_not_even_join(breakable: Slurm) -> None:
    """A mistake in the pod's capabilities."""
    namespace = breakable.namespace
    sets: Any = client.AppsV1Api(breakable.kubernetes.api)  # the models say that every field may be None
    containers = sets.read_namespaced_stateful_set("cpu", namespace).spec.template.spec.containers
    (slurmd,) = (container for container in containers if container.name == "slurmd")
    kept = list(slurmd.security_context.capabilities.add)

    def give(capabilities: list[str]) -> None:
        context = {"capabilities": {"add": capabilities, "drop": ["ALL"]}}
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "slurmd", "securityContext": context}]}}}}
        sets.patch_namespaced_stateful_set("cpu", namespace, patch)
        wait_until(is_known, what="a new pod would have the new template")

    def is_known() -> bool:
        found = sets.read_namespaced_stateful_set("cpu", namespace)
        return bool(found.status.observed_generation == found.metadata.generation)

    def has_failed() -> bool:
        pods = breakable.api.list_namespaced_pod(namespace, field_selector="metadata.name=cpu-0").items  # none at first
        statuses = [status for pod in pods for status in pod.status.container_statuses or []]
        return any(status.name == "slurmd" and status.restart_count > 0 for status in statuses)

    give([capability for capability in kept if capability != "SYS_ADMIN"])
    try:
        breakable.api.delete_namespaced_pod("cpu-0", namespace, grace_period_seconds=0)
        wait_until(has_failed, what="slurmd's container has ended by itself")
    finally:
        give(kept)
        replace_worker(breakable)
        revive(breakable)
