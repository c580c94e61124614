"""Cost of the jail for each srun."""

import json
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

PAIRS = size(200, 2)
NAMESPACES = size(200, 2)

PLUGSTACK = "/var/spool/slurmd/conf-cache/plugstack.conf"
JAILED, PLAIN = "/var/spool/slurmd/with", "/var/spool/slurmd/without"

# One srun a line, timed where it is typed: what ssh and the test itself take is outside.
SRUNS = """
while read -r _; do
    begin=$EPOCHREALTIME
    srun --jobid={job} --overlap -n1 true </dev/null || exit
    echo $begin $EPOCHREALTIME
done
"""


@pytest.fixture
def slurm(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Slurm]:
    bring_images(kubernetes)
    made = Slurm(
        kubernetes, tmp_path, a_cluster(name=unique("bench-jail"), node_sets=[a_node_set("cpu")], jail=a_jail(JAIL))
    )
    yield made
    made.destroy()


def let_jobs_run_outside(slurm: Slurm) -> None:
    """Open the worker's own root, where nothing of a user can run: without this there is nothing to compare with."""
    apps = slurm.kubernetes.run
    opened = {"name": "slurmd", "securityContext": {"readOnlyRootFilesystem": False}}
    patch = json.dumps({"spec": {"template": {"spec": {"containers": [opened]}}}})
    apps("patch", "statefulset", "cpu", "--namespace", slurm.namespace, "--patch", patch)
    apps("delete", "pod", "cpu-0", "--namespace", slurm.namespace)
    apps("wait", "pod", "cpu-0", "--namespace", slurm.namespace, "--for=condition=Ready", "--timeout=120s")
    wait_until(lambda: slurm.node_state("cpu-0") == "IDLE+DYNAMIC_NORM", what="cpu-0 is idle again")
    slurm.exec("cpu-0", "slurmd", "chmod", "0755", "/usr", "/opt")
    slurm.exec("cpu-0", "slurmd", "cp", PLUGSTACK, JAILED)
    slurm.exec("cpu-0", "slurmd", "cp", "/dev/null", PLAIN)


def namespace_seconds(slurm: Slurm) -> float:
    """Return the time in which the node's kernel makes and removes a mount namespace of a process."""

    def loop(kind: str) -> float:
        script = f"i=0; while [ $i -lt {NAMESPACES} ]; do unshare --{kind} true; i=$((i + 1)); done"
        return seconds(lambda: slurm.exec("cpu-0", "slurmd", "sh", "-ec", script)) / NAMESPACES

    return max(0.0, loop("mount") - loop("uts"))


def allocate(slurm: Slurm) -> int:
    slurm.ssh("salloc --no-shell -N1 -n1 --time=30")
    return int(slurm.ssh("squeue --me --noheader --format=%i").stdout)


def test_an_srun_with_the_plugin_against_one_without(slurm: Slurm) -> None:
    slurm.up()
    let_jobs_run_outside(slurm)
    job = allocate(slurm)
    seen = {}
    for stack in (JAILED, PLAIN):
        slurm.exec("cpu-0", "slurmd", "cp", stack, PLUGSTACK)
        seen[stack] = slurm.ssh(f"srun --jobid={job} --overlap -n1 cat /etc/os-release").stdout
    assert seen[JAILED] != seen[PLAIN], "both ran on the same root"

    taken: dict[str, list[float]] = {JAILED: [], PLAIN: []}
    with slurm.ssh_session(f"bash -c '{SRUNS.format(job=job)}'") as session, swapper(slurm) as stacks:
        for pair in range(PAIRS):
            for stack in (JAILED, PLAIN) if pair % 2 else (PLAIN, JAILED):
                answer(stacks, stack)
                begin, end = (float(word) for word in answer(session, "go").split())
                taken[stack].append(end - begin)

    namespace = namespace_seconds(slurm)
    limit = 1 + namespace / statistics.median(taken[PLAIN])
    reason = "a mount namespace of the step's own, which the kernel makes and removes, with nothing mounted in it"
    report("an srun in the jail", taken[JAILED], taken[PLAIN], "the same without the plugin", Goal(1.02, limit, reason))
    added = statistics.median(a - b for a, b in zip(taken[JAILED], taken[PLAIN], strict=True))
    print(f"added by the plugin: median {added * 1000:.2f} ms, of them {namespace * 1000:.2f} ms for the namespace")


@contextmanager
def swapper(slurm: Slurm) -> Iterator[subprocess.Popen[str]]:
    """Copy each file that is named to it over the worker's plugstack.conf."""
    kubectl = [str(slurm.kubernetes.kubectl), "--kubeconfig", str(slurm.kubernetes.kubeconfig), "-n", slurm.namespace]
    script = f"while read -r stack; do cp $stack {PLUGSTACK}; echo done; done"
    with subprocess.Popen(
        [*kubectl, "exec", "--stdin", "cpu-0", "--container", "slurmd", "--", "sh", "-ec", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def answer(process: subprocess.Popen[str], line: str) -> str:
    """Write a line to a process and return the line that it answers."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    said = process.stdout.readline()
    assert said, "the session has ended"
    return said
