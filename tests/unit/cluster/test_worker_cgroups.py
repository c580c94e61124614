"""Cgroups of a worker's node."""

from tests.unit.cluster.worker_container import Worker


def test_a_pod_that_stops_removes_its_nodes_cgroups_and_no_others(worker: Worker) -> None:
    cgroups = worker.root / "cgroup"
    for node in ("cpu-4", "cpu-40", "cpu-5"):
        (cgroups / "memory" / f"slurm_{node}" / "system").mkdir(parents=True)
    worker.node("IDLE+DRAIN", "disk is broken")
    worker.options["cgroups"] = True
    worker.stop()
    assert {each.name for each in (cgroups / "memory").iterdir()} == {"slurm_cpu-40", "slurm_cpu-5"}


def test_slurmd_finds_its_nodes_own_cgroups_writable_and_the_machines_read_only(worker: Worker) -> None:
    """The folders of cgroup v1, with a controller that has two names, and one that Slurm does not use."""
    cgroups = worker.root / "cgroup"
    for name in ("cpu,cpuacct", "memory", "pids"):
        (cgroups / name).mkdir(parents=True)
    (cgroups / "cpuacct").symlink_to("cpu,cpuacct")
    worker.options["cgroups"] = True
    worker.start()

    mounts = [line.removeprefix("mount ") for line in worker.calls.read_text().splitlines() if str(cgroups) in line]
    seen = worker.root / "jail-cgroups"
    assert mounts == [
        *(f"--bind {cgroups}/cpu,cpuacct/slurm_cpu-4 {where}/cpu,cpuacct/slurm_cpu-4" for where in (cgroups, seen)),
        f"--bind {cgroups}/cpu,cpuacct/cgroup.procs {cgroups}/cpu,cpuacct/cgroup.procs",
        f"-o remount,bind,ro {cgroups}/cpu,cpuacct",
        *(f"--bind {cgroups}/memory/slurm_cpu-4 {where}/memory/slurm_cpu-4" for where in (cgroups, seen)),
        f"--bind {cgroups}/memory/cgroup.procs {cgroups}/memory/cgroup.procs",
        f"-o remount,bind,ro {cgroups}/memory",
        f"-o remount,bind,ro {cgroups}/pids",
        f"-o remount,bind,ro {cgroups}",
    ]
    assert (cgroups / "memory" / "slurm_cpu-4" / "memory.limit_in_bytes").read_text() == f"{512 * 2**20}\n"
    assert (seen / "cpuacct").readlink().name == "cpu,cpuacct"


def test_the_one_hierarchy_of_cgroup_v2_stays_as_it_is_and_jobs_see_nothing_of_it(worker: Worker) -> None:
    cgroups = worker.root / "cgroup"
    cgroups.mkdir()
    (cgroups / "cgroup.controllers").touch()
    worker.options["cgroups"] = True
    worker.start()

    assert str(cgroups) not in worker.calls.read_text()
    assert list((worker.root / "jail-cgroups").iterdir()) == []


def test_jobs_leave_the_pods_cgroup_of_devices_for_one_that_allows_the_pods_devices_alone(worker: Worker) -> None:
    cgroups = worker.root / "cgroup"
    own = cgroups / "devices/slurm_cpu-4"
    (own / "uid_2001/job_7").mkdir(parents=True)
    (worker.root / "dev/shm").mkdir()
    (worker.root / "dev/null").symlink_to("/dev/null")
    (worker.root / "dev/shm/file").touch()
    # As in a hierarchy, each write is an entry; a file of a test keeps the last one.
    (own / "devices.allow").symlink_to(worker.root / "allowed")
    worker.options["cgroups"] = True
    worker.start()
    assert (own / "devices.deny").read_text() == "a\n"
    assert (worker.root / "allowed").read_text() == "c 1:3 rwm\n"
    assert not (own / "uid_2001").exists(), "the kernel takes no other list above it"
