"""The AppArmor profile of `docs/apparmor` in force on a machine whose kernel has AppArmor."""

import shlex
from functools import cache

import pytest

from tests.machines.lab_slurm import as_user, printed
from tools.lab.script_machine import run_script
from tools.lab.slurm_machine import preparation

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

PROFILE = "slurm-jail (enforce)"
RUNTIMES = "cri-containerd.apparmor.d (enforce)"

TRIES = {
    "bind": "mount --bind /run /run",
    "move": "mkdir -p /run/root; mount --rbind / /run/root; cd /run/root; mount --move . /; exec chroot . true",
    "tmpfs": "mount -t tmpfs none /run",
    "group": "mkdir /sys/fs/cgroup/tried",
    "pivot_root": "mount --rbind / /mnt; cd /mnt; pivot_root . mnt",
    "sysctl": "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "core_pattern": "echo '|/tmp/x' > /proc/sys/kernel/core_pattern",
    "other_core_pattern": "mount -t proc proc /mnt; echo '|/tmp/x' > /mnt/sys/kernel/core_pattern",
    "sysrq": "echo h > /proc/sysrq-trigger",
    "other_sysrq": "mount -t proc proc /mnt; echo h > /mnt/sysrq-trigger",
    "profiles": "cat /sys/kernel/security/apparmor/profiles",
    "bound_core_pattern": "mount --bind /proc/sys/kernel /mnt; echo '|/tmp/x' > /mnt/core_pattern",
    "bound_sysrq": "mkdir /run/a; touch /run/a/s; mount --bind /proc/sysrq-trigger /run/a/s; echo h > /run/a/s",
    "tuning": "echo N > /sys/module/printk/parameters/time",
}
"""Acts of root with all capabilities, by their names. Every one has mounts of its own."""

ALLOWED = ["bind", "move", "tmpfs", "group", "bound_core_pattern", "bound_sysrq"]
"""Acts that the profile does not refuse. The last two are what docs/security.md says of names."""


UNDER = 'sh -ec \'printf "exec slurm-jail" > /proc/self/attr/exec; exec "$@"\' sh'
"""Command that runs its arguments under the profile."""


@cache
def tried(under: str = UNDER) -> dict[str, str]:
    """Return the outcomes of the acts, by their names. `under` is a command that runs its arguments."""
    script = "\n".join(
        f"if {under} unshare --mount sh -ec {shlex.quote(act)} > /run/words 2>&1; then echo {name} done;"
        f" else echo {name} refused: $(tail -n 1 /run/words); fi"
        for name, act in TRIES.items()
    )
    lines = run_script(preparation() + script, writable=True).splitlines()
    return dict(line.split(" ", 1) for line in lines if line.split(" ", 1)[0] in TRIES)


@pytest.mark.parametrize("act", TRIES)
def test_root_may_do_all_of_it_without_a_profile(act: str) -> None:
    assert tried("")[act] == "done"


@pytest.mark.parametrize("act", TRIES)
def test_root_under_the_profile_may_mount_and_use_its_cgroups_and_write_no_file_of_the_machine_by_name(
    act: str,
) -> None:
    outcome = tried()[act]
    assert outcome == "done" if act in ALLOWED else "Permission denied" in outcome


COMMANDS = {
    "nodes": as_user("srun -N2 hostname"),
    "job": as_user("srun -N1 cat /proc/self/attr/current"),
    "session": as_user("cat /proc/self/attr/current"),
    "containers": """
        for folder in /proc/[0-9]*; do
            ! grep -q kubepods "$folder/cgroup" || echo "$(cat "$folder/comm") $(cat "$folder/attr/current")"
        done 2> /dev/null | grep -v '^runc' | grep . | sort -u
    """,
    "populate": "sort -u /run/populate",
    "worker": """
        kubectl exec -n slurm cpu-0 -c slurmd -- unshare --mount sh -c 'mount -t proc proc /mnt && echo mounted
            echo 1 > /mnt/sys/kernel/core_pattern' 2>&1
    """,
}

UP = """
sed -i 's|^    jail:$|&\\n      app_armor: localhost/slurm-jail|' stacks/Pulumi.local.yaml
while sleep 3; do
    for file in $(grep -la 'jail_tool[s]' /proc/[0-9]*/cmdline); do cat "${file%cmdline}attr/current"; done
done > /run/populate 2> /dev/null &
"""


@cache
def said() -> dict[str, str]:
    """Return what the commands print in a cluster whose workers and login nodes have the profile."""
    return printed(COMMANDS, before=UP)


def test_jobs_and_sessions_run_under_the_profile() -> None:
    assert sorted(said()["nodes"].split()) == ["cpu-0", "cpu-1"]
    assert said()["job"].strip() == PROFILE
    assert said()["session"].strip() == PROFILE


def test_containers_that_mount_have_the_profile_and_all_others_have_the_runtimes() -> None:
    lines = said()["containers"].strip().splitlines()
    assert {f"slurmd {PROFILE}", f"sshd {PROFILE}"} <= {*lines}
    assert {f"slurmctld {RUNTIMES}", f"slurmdbd {RUNTIMES}", f"munged {RUNTIMES}"} <= {*lines}
    unconfined = [line for line in lines if not line.endswith((PROFILE, RUNTIMES))]
    assert unconfined == ["pause unconfined"]  # Kubernetes' own, in every pod


def test_the_jail_is_filled_under_the_runtimes_profile() -> None:
    assert RUNTIMES in said()["populate"].splitlines()


def test_root_of_a_worker_mounts_and_changes_no_setting_of_the_machine_there() -> None:
    assert "mounted" in said()["worker"]
    assert "Permission denied" in said()["worker"]
