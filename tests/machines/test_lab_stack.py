"""README's quick start on a machine whose kernel has cgroup v2 and AppArmor, and jobs there."""

import re
import shlex
from functools import cache

import pytest

from tools import paths
from tools.lab.script_machine import run_script

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

UP = f"""set -e
hostname lab
# The kubelet wants a clock rate, which the processors of user-mode Linux do not tell.
sed 's/^bogomips.*/&\\ncpu MHz\\t\\t: 2000.000/' /proc/cpuinfo > /run/cpuinfo
mount --bind /run/cpuinfo /proc/cpuinfo
export HOME=/root
# Layers of containers can't be layers over the machine's own.
mkdir -p /root/.local/state /var/lib/kubelet
mount -t tmpfs -o size=90% tmpfs /root/.local/state
mount -t tmpfs -o size=90% tmpfs /var/lib/kubelet
cd {paths.ROOT}
# The stack of the embedded Kubernetes has no limits of jobs, as other machines may lack what they take.
sed -i 's/constrain: none/constrain: cgroup/' stacks/Pulumi.local.yaml
make up
"""

COMMANDS = {
    "nodes": "srun -N2 hostname",
    "cgroup": "srun -N1 --mem=100 sh -c 'cat /proc/self/cgroup; find /sys/fs/cgroup -name memory.max -exec cat {} +'",
    "outgrown": "srun -N1 --mem=100 python3 -c 'bytearray(300 << 20)'; echo status $?",
    "neighbour": (
        "sbatch --wait -N1 -wcpu-0 --mem=100 --wrap 'sleep 20; echo done' -o ~/neighbour & sleep 5;"
        " srun -N1 -wcpu-0 --mem=100 python3 -c 'bytearray(300 << 20)'; wait; cat ~/neighbour"
    ),
    "idle": "sinfo --noheader --format=%T",
}
"""Commands of a user by their names."""


@cache
def said() -> dict[str, str]:
    """Return what the commands print, after `make up`, all on one machine."""
    steps = [f"echo '== {name}'; make -s ssh CMD={shlex.quote(command)} || true" for name, command in COMMANDS.items()]
    printed = run_script("\n".join((UP, *steps)), memory_mib=8192, processors=2, writable=True, timeout_seconds=1800)
    parts = re.split(r"^== (\w+)$", printed, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_a_job_of_the_default_stack_runs_on_all_nodes() -> None:
    assert sorted(said()["nodes"].split()) == ["cpu-0", "cpu-1"]


def test_a_job_has_the_memory_that_it_asked_for_in_a_cgroup_of_its_own() -> None:
    place, *limits = said()["cgroup"].split()
    assert re.fullmatch(r"0::/system\.slice/cpu-\d_slurmstepd\.scope/job_\d+/step_0/user/task_0", place)
    assert str(100 << 20) in limits


def test_a_job_that_outgrows_its_memory_is_killed_and_nodes_stay_in_service() -> None:
    assert "Out Of Memory" in said()["outgrown"]
    assert said()["outgrown"].endswith("status 1\n")
    assert said()["idle"].split() == ["idle"]


def test_another_job_of_the_node_goes_on() -> None:
    assert "Out Of Memory" in said()["neighbour"]
    assert said()["neighbour"].endswith("done\n")
