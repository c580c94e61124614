"""Cost of `up` against the same work by hand: ratios of runs that take turns."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size
from tests.bench.test_accounting import ACCOUNTING
from tests.cluster.slurm import JAIL, SMALL, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import paths

pytestmark = pytest.mark.cluster

ROUNDS, OPERATIONS = size(3, 1), size(5, 1)
"""Deployments until srun works, and operations that change nothing."""
FEW, MANY = 1, size(20, 2)
"""Counts of node sets."""
CONFIG_MAPS = 30

ALL_PARTS = {"accounting": ACCOUNTING, "rest": {"pod_resources": SMALL}, "metrics": {}, "health": {"enabled": True}}
"""Parts of a cluster that a program need not have."""

KINDS = (
    "persistentvolumeclaims,secrets,configmaps,services,networkpolicies,statefulsets,poddisruptionbudgets,jobs,cronjobs"
)
OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "annotations")

BARE = Path(__file__).parent / "programs" / "config_maps"
"""A bare program: the least that everyone needs who deploys with Pulumi."""

PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Runs a command and prints the KiB of its largest process. It is small: a process counts what it was forked from."""


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
    objects = [item for item in json.loads(listed)["items"] if item["metadata"]["name"] != "kube-root-ca.crt"]
    for object_ in objects:
        object_.pop("status", None)
        for key in OF_THE_SERVER:
            object_["metadata"].pop(key, None)
        for key in ("clusterIPs", "volumeName", *(["clusterIP"] if object_["metadata"]["name"] != "nodes" else [])):
            object_.get("spec", {}).pop(key, None)
        if object_["kind"] == "Job":  # these name the one that was
            del object_["spec"]["selector"]
            labels = object_["spec"]["template"]["metadata"]["labels"]
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

    what = "up until srun -N2 works" + (", with accounting" if accounting is ACCOUNTING else "")
    report(what, ours, theirs, "kubectl apply of the same objects", Goal(1.5))


def operation(slurm: Slurm, name: str = "up") -> list[str]:
    """Return the command of an operation on the cluster's stack, in processes of its own, as a person starts it."""
    return command(slurm, {"state": str(slurm.folder / "engine"), "config": slurm.config, "operation": name})


def bare_operation(slurm: Slurm, count: int, name: str = "up") -> list[str]:
    """Return the command of an operation on so many ConfigMaps in the cluster's namespace."""
    config = {"config-maps:namespace": slurm.namespace, "config-maps:count": str(count)}
    stack = {"project": str(BARE), "state": str(slurm.folder / "bare"), "config": config}
    return command(slurm, {**stack, "operation": name})


def command(slurm: Slurm, given: dict[str, Any]) -> list[str]:
    variables = {"KUBECONFIG": str(slurm.kubernetes.kubeconfig)}
    return [sys.executable, "-m", "tests.cluster.run", json.dumps({**given, "environment": variables})]


def run(words: list[str]) -> str:
    done = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("parts", [{}, ALL_PARTS], ids=["the smallest cluster", "all parts"])
def test_up_without_a_change_against_a_program_of_config_maps(slurm: Slurm, parts: dict[str, Any]) -> None:
    slurm.cluster |= parts
    slurm.up()
    run(bare_operation(slurm, CONFIG_MAPS))
    ours, theirs = [], []
    for _ in range(OPERATIONS):
        theirs.append(seconds(lambda: run(bare_operation(slurm, CONFIG_MAPS))))
        ours.append(seconds(lambda: run(operation(slurm))))

    what = f"up without a change of {len(slurm.deployer().state())} resources"
    report(what, ours, theirs, f"{CONFIG_MAPS} ConfigMaps", Goal(2.0))


@pytest.mark.timeout(1800)
def test_up_and_preview_without_a_change_of_many_node_sets_against_one(slurm: Slurm) -> None:
    times: dict[tuple[str, int], list[float]] = {}
    bare: dict[tuple[str, int], list[float]] = {}
    resources: dict[int, int] = {}
    for count in (FEW, MANY):
        slurm.cluster["node_sets"] = [a_node_set(f"n{number}") for number in range(count)]
        slurm.up()
        resources[count] = len(slurm.deployer().state())
        run(bare_operation(slurm, resources[count]))
        for name in ("up", "preview"):
            ours, theirs = (operation(slurm, name), bare_operation(slurm, resources[count], name))
            taken = [(seconds(partial(run, ours)), seconds(partial(run, theirs))) for _ in range(OPERATIONS)]
            times[name, count], bare[name, count] = (list(series) for series in zip(*taken, strict=True))

    for name in ("up", "preview"):
        limit = statistics.median(bare[name, MANY]) / statistics.median(bare[name, FEW])
        reason = f"{resources[MANY]} ConfigMaps against {resources[FEW]}, as many objects as the programs register"
        what = f"{name} without a change of {MANY} node sets"
        report(what, times[name, MANY], times[name, FEW], "one node set", Goal(1.3, limit, reason))


def test_the_largest_process_of_up_against_that_of_config_maps(slurm: Slurm) -> None:
    ours, theirs = (
        int(run([sys.executable, "-IS", "-c", PEAK, *words])) / 1024
        for words in (operation(slurm), bare_operation(slurm, CONFIG_MAPS))
    )
    report("largest process of up", [ours], [theirs], f"{CONFIG_MAPS} ConfigMaps", Goal(1.5), unit="MiB")
