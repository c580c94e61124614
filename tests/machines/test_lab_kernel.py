"""The worker's scripts on the lab's kernel, which has cgroup v2 and AppArmor."""

import shlex

import pytest

from tools.console import UserError
from tools.lab.script_machine import run_on_terminal, run_script
from tools.paths import ROOT

pytestmark = pytest.mark.soak

SCRIPTS = ROOT / "images" / "worker" / "scripts"

IN_A_CONTAINER = """set -e
echo "+cpuset +cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/container
echo 1 > /sys/fs/cgroup/container/memory.oom.group # as the kubelet does
echo 200M > /sys/fs/cgroup/container/memory.max
sh -c 'echo $$ > /sys/fs/cgroup/container/cgroup.procs; exec unshare --cgroup --mount sh -c "$1"' sh {script}
"""
"""Script that runs another one in the cgroup of a container, as runc makes it with cgroup v2."""

OPENED = f"""set -e
umount /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -o remount,bind,ro /sys/fs/cgroup
. {SCRIPTS}/layout.sh
. {SCRIPTS}/cgroups.sh
open_cgroups n1
"""


def in_a_container(script: str) -> list[str]:
    """Return the lines of a script that runs in a container's cgroup, after the worker has opened it."""
    return run_script(IN_A_CONTAINER.format(script=shlex.quote(OPENED + script))).split("\n")


def test_the_kernel_has_cgroup_v2_with_the_controllers_of_a_worker_and_apparmor() -> None:
    printed = run_script("cat /sys/fs/cgroup/cgroup.controllers /sys/kernel/security/lsm")
    controllers, modules = printed.strip().split("\n")[-2:]
    assert {"cpu", "cpuset", "memory", "pids"} <= set(controllers.split())
    assert "apparmor" in modules.split(",")


def test_a_machine_cannot_write_the_files_of_the_one_that_it_runs_on() -> None:
    printed = run_script(f"! touch {ROOT}/written-by-the-lab; echo tried")
    assert "tried" in printed
    assert not (ROOT / "written-by-the-lab").exists()


def test_a_command_on_a_machine_gives_its_exit_code_and_its_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_on_terminal("echo said; exit 3", memory_mib=512, processors=1) == 3
    assert "said" in capfd.readouterr().out


def test_a_machine_that_reboots_ends() -> None:
    with pytest.raises(UserError, match="ended before its script"):
        run_on_terminal("echo b > /proc/sysrq-trigger; sleep 60", memory_mib=512, processors=1)


def test_a_step_that_outgrows_its_memory_ends_alone() -> None:
    lines = in_a_container("""
        parent=$CGROUPS/system.slice
        step=$parent/n1_slurmstepd.scope
        echo +memory > $parent/cgroup.subtree_control
        echo 50M > $step/memory.max
        sleep 600 &
        other=$!
        status=0
        sh -c "echo \\$\\$ > $step/cgroup.procs; exec python3 -I -c 'bytearray(120 << 20)'" || status=$?
        echo "step $status"
        kill -0 $other && echo "the other process runs"
        kill $other
    """)
    assert "step 137" in lines
    assert "the other process runs" in lines


def test_the_worker_turns_off_the_end_of_all_its_processes_at_once() -> None:
    assert "group 0" in in_a_container('echo "group $(cat $CGROUPS/memory.oom.group)"')
