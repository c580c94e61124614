"""Cost of `up` against the same work by hand: ratios of runs that take turns."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bench.ratios import report, seconds
from tests.bench.test_accounting import ACCOUNTING
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import paths

ROUNDS = 3
KINDS = (
    "persistentvolumeclaims,secrets,configmaps,services,networkpolicies,statefulsets,poddisruptionbudgets,jobs,cronjobs"
)
OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "annotations")

CONFIG_MAPS = Path(__file__).parent / "programs" / "config_maps"
"""A bare program: what nobody can do without who deploys with Pulumi."""


@pytest.fixture
def slurm(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Slurm]:
    bring_images(kubernetes)
    made = Slurm(kubernetes, tmp_path, a_cluster(name=unique("bench"), jail=a_jail(JAIL)))
    yield made
    made.destroy()


def until_srun_works(slurm: Slurm) -> None:
    wait_until(
        lambda: slurm.ssh("srun -N2 hostname", check=False).returncode == 0,
        what="srun runs on two nodes",
        timeout_seconds=600,
    )


def up_until_srun_works(slurm: Slurm) -> None:
    slurm.up()
    until_srun_works(slurm)


def manifests(slurm: Slurm) -> list[dict[str, Any]]:
    """Return what `up` made, as one would have written it by hand."""
    listed = slurm.kubernetes.run("get", KINDS, "--namespace", slurm.namespace, "--output", "json")
    objects = [each for each in json.loads(listed)["items"] if each["metadata"]["name"] != "kube-root-ca.crt"]
    for each in objects:
        each.pop("status", None)
        for key in OF_THE_SERVER:
            each["metadata"].pop(key, None)
        for key in ("clusterIPs", "volumeName", *(["clusterIP"] if each["metadata"]["name"] != "nodes" else [])):
            each.get("spec", {}).pop(key, None)
        if each["kind"] == "Job":  # these name the one that was
            del each["spec"]["selector"]
            labels = each["spec"]["template"]["metadata"]["labels"]
            for key in [key for key in labels if key.endswith(("controller-uid", "job-name"))]:
                del labels[key]
    return objects


def apply_until_srun_works(slurm: Slurm, objects: list[dict[str, Any]]) -> None:
    slurm.kubernetes.run("create", "namespace", slurm.namespace)
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    slurm.kubernetes.run("apply", "--filename", "-", stdin=listed)
    wait_until(lambda: undrained(slurm), what="both nodes have joined and are undrained", timeout_seconds=600)
    until_srun_works(slurm)


def undrained(slurm: Slurm) -> bool:
    """Undrain nodes that have just joined, as `up` does: without it, they undrain themselves two minutes later."""
    undrain = ["update", "nodename=cpu-[0-1]", "state=undrain"]
    controller = ["exec", "--namespace", slurm.namespace, "controller-0", "--container", "slurmctld", "--"]
    try:
        slurm.kubernetes.run(*controller, "scontrol", *undrain)
    except AssertionError:  # no pod, no slurmctld, or no node yet
        return False
    return True


@pytest.mark.timeout(1800)  # by hand, pods crash and back off until the database is there
@pytest.mark.parametrize("accounting", ["none", ACCOUNTING], ids=["without accounting", "with accounting"])
def test_up_until_srun_works_against_kubectl_apply_of_the_same_manifests(slurm: Slurm, accounting: object) -> None:
    slurm.cluster["accounting"] = accounting
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(lambda: up_until_srun_works(slurm)))
        objects = manifests(slurm)
        slurm.deployer().destroy()
        theirs.append(seconds(lambda: apply_until_srun_works(slurm, objects)))  # noqa: B023 - called at once
        slurm.kubernetes.run("delete", "namespace", slurm.namespace)

    report("up until srun -N2 works", ours, theirs, "kubectl apply of the same objects", 1.5)


@dataclass
class Bare:
    """A stack of the bare program."""

    slurm: Slurm
    state: Path

    def up(self) -> None:
        given = {
            "project": str(CONFIG_MAPS),
            "state": str(self.state),
            "config": {"config-maps:namespace": self.slurm.namespace},
            "environment": {"KUBECONFIG": str(self.slurm.kubernetes.kubeconfig)},
        }
        command = [sys.executable, "-m", "tests.cluster.run", json.dumps(given)]
        subprocess.run(command, cwd=paths.ROOT, check=True, capture_output=True)


def up_alone(slurm: Slurm, operation: str = "up") -> None:
    """Deploy, or preview, in a process of its own, as a person does."""
    with slurm.start_up(operation=operation) as process:
        process.communicate()
    assert process.returncode == 0


def test_up_without_a_change_against_a_program_of_thirty_config_maps(slurm: Slurm, tmp_path: Path) -> None:
    slurm.up()
    bare = Bare(slurm, tmp_path / "bare")
    bare.up()
    ours, theirs = [], []
    for _ in range(ROUNDS + 2):
        theirs.append(seconds(bare.up))
        ours.append(seconds(lambda: up_alone(slurm)))

    report("up without a change", ours, theirs, "30 ConfigMaps", 2.0)


def test_up_and_preview_without_a_change_of_twenty_node_sets_against_one(slurm: Slurm) -> None:
    def with_node_sets(count: int) -> None:
        slurm.cluster["node_sets"] = [a_node_set(f"n{number}") for number in range(count)]
        slurm.up()

    times: dict[tuple[str, int], list[float]] = {}
    for count in (1, 20):
        with_node_sets(count)
        for operation in ("up", "preview"):
            taken = [seconds(lambda: up_alone(slurm, operation)) for _ in range(ROUNDS + 2)]  # noqa: B023 - called at once
            times[operation, count] = taken

    for operation in ("up", "preview"):
        what = f"{operation} without a change of 20 node sets"
        report(what, times[operation, 20], times[operation, 1], "one node set", 1.3)


def test_the_engines_memory(slurm: Slurm) -> None:
    up_alone(slurm)
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024

    print(f"\nlargest process of up: {peak_mib:.0f} MiB")
