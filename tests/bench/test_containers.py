"""Cost of a container: its first start, from the layout of its image, and every later one."""

import os
import statistics
from collections.abc import Iterator

import pytest
from containers_testing.image_registry import layer, make_layout

from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size
from tests.bench.test_jail import allocate, answer
from tests.cluster import busybox
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.conftest import Kubernetes

pytestmark = pytest.mark.cluster

LAYERS = size(8, 1)
LAYER_MIB = size(256, 8)
FIRST_STARTS = size(5, 1)
PAIRS = size(100, 2)
TASKS = size(9, 2)

IMAGE = "/data/layout"

START = f"srun -n1 --mem=800 --container-image={IMAGE} true"

BY_HAND = (
    "skopeo --insecure-policy copy --quiet oci:/data/layout oci:layout:1",
    "umoci --log=error unpack --rootless --image layout:1 bundle",
    "cp -a bundle/rootfs tree",
)
"""A first start as a user would write it, with the programs of the plugin, next to the user's store."""

TASK_SECONDS = 0.010
"""Goal of what the start of a task takes longer in a container than in the jail."""

# One srun a line, timed where it is typed: what ssh and the test itself take is outside.
SRUNS = """
while read -r options; do
    begin=$EPOCHREALTIME
    srun --jobid={job} --overlap --overcommit $options true </dev/null || exit
    echo $begin $EPOCHREALTIME
done
"""


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster with the layout of an image in a submount, of files that do not compress."""
    bring_images(kubernetes)
    data = tmp_path_factory.mktemp("data")
    data.chmod(0o755)
    layers = (layer([(f"data/{number}", os.urandom(LAYER_MIB << 20))]) for number in range(LAYERS))
    programs = layer([("bin/true", busybox.program())], mode=0o755)
    make_layout(data / "layout", (programs, *layers), Env=["PATH=/bin"])
    jail = a_jail(JAIL, submounts=[{"path": "/data", "host_path": str(data), "read_only": True}])
    described = a_cluster(name=unique("bench-images"), node_sets=[a_node_set("cpu")], jail=jail, containers={})
    made = Slurm(kubernetes, tmp_path_factory.mktemp("bench"), described)
    try:
        made.up()
        made.ssh("chmod 0711 ~")
        yield made
    finally:
        made.destroy()


def start_by_hand(slurm: Slurm) -> None:
    for command in BY_HAND:
        slurm.exec("cpu-0", "slurmd", "sh", "-ec", f"cd /jail/home/alice/by-hand; {command}")


@pytest.mark.timeout(1800)
def test_a_first_start_against_the_same_by_hand(slurm: Slurm) -> None:
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(FIRST_STARTS):
        slurm.ssh("rm -rf ~/.local/share/soperator/containers ~/by-hand; mkdir -m 0777 ~/by-hand; sync")
        taken[0].append(seconds(lambda: slurm.ssh(START, timeout_seconds=600)))
        taken[1].append(seconds(lambda: start_by_hand(slurm)))
        slurm.exec("cpu-0", "slurmd", "sh", "-c", "rm -rf /jail/home/alice/by-hand/*")
    what = f"the first start of an image of {LAYERS * LAYER_MIB} MiB"
    report(what, *taken, "skopeo copy, umoci unpack and cp", Goal(1.0))


@pytest.mark.parametrize("tasks", [1, TASKS])
def test_a_later_start_against_one_in_the_jail(slurm: Slurm, tasks: int) -> None:
    slurm.ssh(START, timeout_seconds=600)
    job = allocate(slurm)
    options = (f"-n{tasks} --container-image={IMAGE}", f"-n{tasks}")
    taken: tuple[list[float], list[float]] = ([], [])
    with slurm.ssh_session(f"bash -c '{SRUNS.format(job=job)}'") as session:
        for pair in range(PAIRS):
            for kind in (0, 1) if pair % 2 else (1, 0):
                begin, end = (float(word) for word in answer(session, options[kind]).split())
                taken[kind].append(end - begin)
    slurm.ssh(f"scancel {job}")
    goal = Goal(1 + tasks * TASK_SECONDS / statistics.median(taken[1]))
    report(f"a later srun of {tasks} tasks in an image", *taken, "the same in the jail", goal)
    added = statistics.median(a - b for a, b in zip(*taken, strict=True)) / tasks
    print(f"added by the container: median {added * 1000:.1f} ms for a task")
