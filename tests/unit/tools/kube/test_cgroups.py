"""Both layouts of cgroups."""

import shutil
from pathlib import Path
from threading import Thread

from tools.kube.cgroups import hierarchies, processes

V1 = """\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0
"""
HYBRID = V1 + "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0\n"


def test_v1_has_a_hierarchy_for_each_mount() -> None:
    found = hierarchies(V1)
    assert not found.unified
    assert len(found.folders) == 3
    assert {"cpu", "cpuacct", "pids"} <= found.controllers


def test_the_hybrid_form_is_v1_with_one_more_hierarchy() -> None:
    found = hierarchies(HYBRID)
    assert not found.unified
    assert found.folders[-1] == Path("/sys/fs/cgroup/unified")


def test_servers_are_marked_in_a_hierarchy_that_does_not_change_how_they_run() -> None:
    assert hierarchies(HYBRID).marking == Path("/sys/fs/cgroup/pids")


def test_v2_has_one_hierarchy_whose_controllers_the_kernel_names() -> None:
    found = hierarchies(V2, "cpuset cpu io memory pids\n")
    assert found.unified
    assert found.folders == (Path("/sys/fs/cgroup"),)
    assert found.marking == Path("/sys/fs/cgroup")
    assert found.controllers == {"cpuset", "cpu", "io", "memory", "pids"}


def test_a_machine_without_cgroups_has_no_controllers() -> None:
    assert hierarchies("proc /proc proc rw 0 0\n", "").controllers == frozenset()


def test_processes_are_counted_while_cgroups_of_pods_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("1\n")

    def come_and_go() -> None:
        for _ in range(20):
            for number in range(20):
                (tmp_path / f"pod{number}" / "container").mkdir(parents=True)
            for number in range(20):
                shutil.rmtree(tmp_path / f"pod{number}")

    pods = Thread(target=come_and_go)
    pods.start()
    while pods.is_alive():
        assert processes(tmp_path) == {1}
    pods.join()
