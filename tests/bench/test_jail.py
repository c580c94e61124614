"""Cost of the jail: for each srun, and to fill against the programs that one would copy a tree with."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bench.ratios import report, seconds, spread
from tests.cluster.programs import program
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, bring_images
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images, paths
from tools.images.store import Store
from tools.kube.debs import Tool

PAIRS = 200
ROUNDS = 4
DISK_GIB = 32
"""Room for four copies a round; the file has holes where nothing was written."""

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
    made = Slurm(kubernetes, tmp_path, a_cluster(name="bench-jail", node_sets=[a_node_set("cpu")], jail=a_jail(JAIL)))
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

    report("an srun in the jail", taken[JAILED], taken[PLAIN], "the same without the plugin", 1.02)
    added = statistics.median(a - b for a, b in zip(taken[JAILED], taken[PLAIN], strict=True))
    print(f"added by the plugin: median {added * 1000:.2f} ms")


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


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A new filesystem. Where much was removed in the last minutes, ext4 makes files several times slower."""
    file, mounted = tmp_path / "disk", tmp_path / "mounted"
    with file.open("wb") as image:
        image.truncate(DISK_GIB << 30)
    mounted.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", file], check=True)
    subprocess.run(["mount", "-o", "loop", file, mounted], check=True)
    yield mounted
    subprocess.run(["umount", mounted], check=True)
    file.unlink()


def unpack_default_jail(root: Path) -> None:
    """Unpack the root filesystem that jails have by default."""
    images.build()
    layout = Store(paths.cache_dir() / "images").layout("jail", images.references()["jail"].rpartition(":")[2])
    root.mkdir()
    for layer in layers(layout):
        subprocess.run(["tar", "-xpf", layer, "--numeric-owner", "--xattrs", "-C", root], check=True)
        for marker in list(root.rglob(".wh.*")):
            marker.unlink()
            gone = marker.with_name(marker.name.removeprefix(".wh."))
            shutil.rmtree(gone) if gone.is_dir() and not gone.is_symlink() else gone.unlink(missing_ok=True)


def layers(layout: Path) -> list[Path]:
    def blob(described: dict[str, Any]) -> Path:
        return layout / "blobs" / str(described["digest"]).replace(":", "/")

    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]).read_text())
    return [blob(layer) for layer in manifest["layers"]]


def run(tool: Tool, *arguments: str | Path) -> None:
    environment = {**os.environ, **tool.environment, "RESTIC_PASSWORD": "bench"}
    subprocess.run([tool.path, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)


def populate(tree: Path, target: Path) -> float:
    """Fill a new tree, and return the seconds that its verification took."""
    names = ["--tree", "0123456789ab", "--source", "image:bench"]
    command = ["populate", "--jail", str(target), *names, "--root", str(tree)]
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT / "images" / "jail-tools")}
    done = subprocess.run(
        [sys.executable, "-m", "jail_tools", *command], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    (numbers,) = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return float(numbers["verify_seconds"])


def test_populate_against_cp_rsync_and_restic(disk: Path) -> None:
    tree, repository = disk / "tree", ["--repo", str(disk / "repository")]
    rsync, restic = program("rsync"), program("restic")
    unpack_default_jail(tree)
    run(restic, "init", *repository)
    run(restic, "backup", *repository, tree)
    methods: dict[str, Callable[[Path], None]] = {
        "cp -a": lambda target: run(Tool("cp", Path("/bin/cp")), "-a", f"{tree}/.", target),
        "rsync -aHAX": lambda target: run(rsync, "-aHAX", f"{tree}/", target),
        "restic restore": lambda target: run(restic, "restore", *repository, "latest", "--target", target),
    }
    taken: dict[str, list[float]] = {name: [] for name in methods}
    verified: list[float] = []
    alone: list[float] = []

    def on_disk(name: str, copy: Callable[[Path], object]) -> float:
        """Return how long a copy takes until it is on the disk. It stays there: see `disk`."""
        subprocess.run(["sync", "--file-system", disk], check=True)
        target = disk / f"{name.partition(' ')[0]}-{len(alone)}"
        target.mkdir()
        return seconds(lambda: (copy(target), subprocess.run(["sync", "--file-system", disk], check=True)))

    for number in range(ROUNDS):
        verifying = 0.0

        def populate_here(target: Path) -> None:
            nonlocal verifying
            verifying = populate(tree, target)

        order = ["populate", *methods]
        for name in order[number % 4 :] + order[: number % 4]:
            took = on_disk(name, populate_here if name == "populate" else methods[name])
            taken.setdefault(name, []).append(took)
        verified.append(taken["populate"][-1])
        alone.append(verified[-1] - verifying)

    for name in methods:
        print(f"\n{name}: median {statistics.median(taken[name]):.3g} s, {spread(taken[name])}")
    fastest = [min(taken[name][number] for name in methods) for number in range(ROUNDS)]
    report("populate without verification", alone, fastest, "the fastest of these", 1.0)
    report("populate with verification", verified, fastest, "the fastest of these", 1.3)
