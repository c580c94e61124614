"""Slurm's record of a node follows the spec as the workers are renewed, and no one loses what names the node."""

import json
from collections.abc import Callable

import pytest

from tests.cluster.slurm import Slurm, a_node_set
from tests.cluster.workers import drain, drained

pytestmark = pytest.mark.cluster

AT_ONCE = {"max_unavailable": "100%"}


def known(slurm: Slurm) -> dict[str, tuple[int, int, tuple[str, ...]]]:
    """Return CPUs, memory in MiB and features that Slurm has of each node."""
    listed = json.loads(slurm.scontrol("show", "nodes", "--json"))["nodes"]
    return {item["name"]: (item["cpus"], item["real_memory"], tuple(item["active_features"])) for item in listed}


def test_other_sizes_and_features_reach_slurm_but_no_node_that_someone_counts_on(
    new_slurm: Callable[..., Slurm],
) -> None:
    slurm = new_slurm(node_sets=[a_node_set("cpu", replicas=3, rolling_update=AT_ONCE)])
    slurm.up()
    drain(slurm, ["cpu-1"], "bad memory")
    reservation = ("reservationname=maint", "starttime=now+1hour", "duration=60", "nodes=cpu-2", "users=root")
    slurm.scontrol("create", "reservation", *reservation)
    slurm.cluster["node_sets"] = [
        a_node_set("cpu", replicas=3, rolling_update=AT_ONCE, cpus=3, memory_gib=1.5, features=["fast"])
    ]

    slurm.up()

    before, after = (2, 1024, ("cpu",)), (3, 1536, ("cpu", "fast"))
    assert known(slurm) == {"cpu-0": after, "cpu-1": before, "cpu-2": before}
    assert {name: node.reason for name, node in drained(slurm).items()} == {"cpu-1": "bad memory"}
    assert "Nodes=cpu-2 " in slurm.scontrol("show", "reservations", "-o")
    for name in ("cpu-1", "cpu-2"):
        log = slurm.api.read_namespaced_pod_log(name, slurm.namespace, container="slurmd")
        assert f"Slurm keeps the record that it has of {name}" in log

    slurm.scontrol("delete", "reservationname=maint")
    slurm.scontrol("update", "nodename=cpu-1", "state=resume")
    slurm.cluster["node_sets"] = [
        a_node_set("cpu", replicas=3, rolling_update=AT_ONCE, cpus=3, memory_gib=1.5, features=["slow"])
    ]
    slurm.up()

    assert known(slurm) == dict.fromkeys(("cpu-0", "cpu-1", "cpu-2"), (3, 1536, ("cpu", "slow")))
    assert drained(slurm) == {}
