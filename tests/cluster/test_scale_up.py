"""More replicas: new nodes are waited for, and of each one that is missing it is said what it lacks.

The cluster of three workers is left as it was.
"""

import json
from collections.abc import Mapping

import pytest

from tests.cluster.slurm import Slurm, a_node_set
from tests.cluster.workers import in_service, pods, said, scale
from tools.engine import DeployError

pytestmark = pytest.mark.cluster

ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchExpressions": [{"key": "apps.kubernetes.io/pod-index", "operator": "Exists"}]},
            }
        ]
    }
}
"""Keeps pods off a machine that has any other pod of a StatefulSet: off every machine of the test's cluster."""


def describe_nodes_that_never_start(slurm: Slurm, **changes: object) -> None:
    """Describe a node set whose pods find no machine."""
    impossible = a_node_set("far", affinity=ALONE, ready_timeout_seconds=10, **changes)
    slurm.cluster["node_sets"] = [slurm.cluster["node_sets"][0], impossible]


def weights(slurm: Slurm) -> Mapping[str, int]:
    return {node["name"]: node["weight"] for node in json.loads(slurm.scontrol("show", "nodes", "--json"))["nodes"]}


def test_new_nodes_take_jobs_and_the_first_to_leave_are_the_last_to_be_filled(workers: Slurm) -> None:
    scale(workers, 4)

    assert in_service(workers) == {"cpu-0", "cpu-1", "cpu-2", "cpu-3"}
    assert weights(workers) == {"cpu-0": 1, "cpu-1": 2, "cpu-2": 2, "cpu-3": 3}
    assert workers.ssh("srun hostname").stdout == "cpu-0\n"
    assert workers.ssh("srun -w cpu-3 hostname").stdout == "cpu-3\n"


def test_what_a_missing_node_lacks_is_reported_unless_it_may_be_missing_or_is_not_waited_for(workers: Slurm) -> None:
    describe_nodes_that_never_start(workers)
    with pytest.raises(DeployError) as failure:
        workers.up()
    describe_nodes_that_never_start(workers, max_unready=1)
    tolerated = workers.up()
    describe_nodes_that_never_start(workers, replicas=2, wait_until_ready=False)
    not_awaited = workers.up()

    assert "far: 1 of 1 nodes have not joined Slurm after 10 s" in str(failure.value)
    assert "anti-affinity" in str(failure.value)
    assert "anti-affinity" in said(tolerated)
    assert "far-1" in said(not_awaited) or "far-[0-1]" in said(not_awaited)
    assert set(pods(workers, "far")) == {"far-0", "far-1"}
    assert in_service(workers) == {"cpu-0", "cpu-1", "cpu-2"}
