"""A worker container's own cgroup, in which Slurm makes those of jobs."""

import shutil

import pytest

from tests.unit.cluster.worker_container import Worker


@pytest.fixture
def of_v1(worker: Worker) -> Worker:
    """Folders of cgroup v1, with a controller that has two names, and some that Slurm does not use."""
    cgroups = worker.root / "cgroup"
    shutil.rmtree(cgroups)
    for name in ("cpu,cpuacct", "memory", "pids", "systemd"):
        (cgroups / name).mkdir(parents=True)
    (cgroups / "cpuacct").symlink_to("cpu,cpuacct")
    return worker


def opened(worker: Worker) -> list[str]:
    return [call for call in worker.calls.read_text().splitlines() if f"{worker.root}/cgroup" in call]


def test_slurmd_finds_the_containers_own_cgroup_writable(worker: Worker) -> None:
    assert worker.start()[0] == "-D"

    assert opened(worker) == [f"mount -o remount,bind,rw {worker.root}/cgroup"]
    assert "unshare --cgroup" not in worker.calls.read_text()


def test_a_container_whose_memory_is_out_loses_one_process_and_not_slurmd_with_all_jobs(worker: Worker) -> None:
    worker.start()

    assert (worker.root / "cgroup/memory.oom.group").read_text() == "0\n"


def test_a_worker_waits_for_a_probe_that_is_about_to_join_it_and_cannot_be_moved_yet(worker: Worker) -> None:
    """The kernel hands out no controllers until then; in its place a directory takes no text."""
    handed_out = worker.root / "cgroup/cgroup.subtree_control"
    handed_out.mkdir()
    worker.write(**{"bin/sleep": f"#!/bin/sh\nrmdir {handed_out}\n"})

    worker.start()

    assert handed_out.read_text() == "+cpuset +cpu +memory\n"


def test_a_worker_leaves_the_cgroups_of_a_machine_alone(worker: Worker) -> None:
    """Where a container runtime gives no cgroup namespace, they are mounted in the container."""
    (worker.root / "cgroup/cgroup.type").unlink()
    worker.write(**{"termination-log": "", "open_as_user.so": ""})

    done = worker.run(worker.start_command())

    assert "The machine's own cgroups are mounted here" in done.stderr
    assert "slurmd does not start with slurm.constrain: cgroup" in done.stderr
    assert opened(worker) == []
    assert not (worker.root / "cgroup/system").exists()


def test_slurmd_finds_those_hierarchies_of_cgroup_v1_writable_in_which_slurm_makes_cgroups(of_v1: Worker) -> None:
    of_v1.start()

    names = ("cpu,cpuacct", "memory")
    assert opened(of_v1) == [f"mount -o remount,bind,rw {of_v1.root}/cgroup/{name}" for name in names]


def test_one_rule_of_cgroup_v1_lets_jobs_open_and_make_a_device_of_their_pod(of_v1: Worker) -> None:
    """As Slurm asks for both at once."""
    devices = of_v1.root / "cgroup/devices"
    devices.mkdir()
    (devices / "devices.list").write_text("c *:* m\nc 195:0 rw\n")
    # As in a hierarchy, each write is an entry; a file of a test keeps the last one.
    (devices / "devices.allow").symlink_to(of_v1.root / "allowed")
    of_v1.start()

    assert (of_v1.root / "allowed").read_text() == "c 195:0 m\n"


def test_slurmd_is_at_the_root_of_a_cgroup_namespace_with_cgroup_v1_too(of_v1: Worker) -> None:
    assert of_v1.start()[0] == "-D"
    assert "unshare --cgroup" in of_v1.calls.read_text()


def test_slurmd_starts_where_cgroups_stay_closed_and_the_log_says_what_it_means(worker: Worker) -> None:
    """With `slurm.constrain: none` it needs none."""
    refuses = "#!/bin/sh\ncase $* in *cgroup*) exit 32 ;; esac\n"
    worker.write(**{"bin/mount": refuses, "termination-log": "", "open_as_user.so": ""})

    done = worker.run(worker.start_command())

    assert done.returncode == 0
    assert "slurmd does not start with slurm.constrain: cgroup" in done.stderr
