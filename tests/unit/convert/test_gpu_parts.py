"""GPUs of pods and of `Gres` in a node set, with nothing lost unseen."""

from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.convert import Converted, Fate
from soperator_pulumi.spec.cluster import parse_cluster
from tests.unit.convert.conversions import completed, converted

GRES = "nodesets.a.extraConfMap.Gres"


def with_devices(folder: Path, limits: str, gres: str = "") -> tuple[dict[str, Any], Converted]:
    """Return the GPUs of the only node set, and the conversion."""
    extra = f", extraConfMap: {{Gres: {gres}}}" if gres else ""
    resources = f"{{limits: {{cpu: 4, memory: 8Gi, {limits}}}}}"
    node_set = f"{{slurmd: {{resources: {resources}}}, partition: {{enabled: true}}{extra}}}"
    conversion = converted(folder, f"clusterName: hpc\nnodesets:\n  a: {node_set}\n")
    return conversion.cluster["node_sets"][0].get("gpus", {}), conversion


@pytest.mark.parametrize(
    ("limits", "gres", "gpus"),
    [
        ("nvidia.com/gpu: 8", '"gpu:h100:8(S:0,1)"', {"count": 8, "type": "h100"}),
        ("nvidia.com/gpu: '8'", '"gpu:l4:8,shard:l4:16"', {"count": 8, "type": "l4", "shards_per_gpu": 2}),
        ("x: 1", "gpu", {"count": 1}),
        ("x: 1", '"gpu:h100:4"', {"count": 4, "type": "h100"}),
        (
            "nvidia.com/gpu: 4, nvidia.com/mig-1g.10gb: 7",
            '["gpu:h100:4", "gpu:1g.10gb:7"]',
            {"count": 4, "type": "h100", "mig": {"1g.10gb": 7}},
        ),
    ],
)
def test_types_and_shards_come_from_gres(tmp_path: Path, limits: str, gres: str, gpus: dict[str, Any]) -> None:
    assert with_devices(tmp_path, limits, gres)[0] == gpus


def test_no_gpus_are_no_gpus(tmp_path: Path) -> None:
    gpus, conversion = with_devices(tmp_path, "nvidia.com/gpu: 0")
    assert gpus == {}
    assert parse_cluster(completed(conversion)).node_sets[0].gpus is None


@pytest.mark.parametrize(
    ("limits", "gres", "path", "text"),
    [
        ("nvidia.com/gpu: 4, amd.com/gpu: 2", "", 'limits["amd.com/gpu"]', "a node has GPUs of one vendor"),
        ("nvidia.com/gpu: 8", '"gpu:8,nic:2"', GRES, "jobs share all others (extra_resources): nic:2"),
        ("nvidia.com/gpu: 8", "gpu:4", GRES, "the GPUs of the pod count: 8"),
        ("nvidia.com/gpu: 8", '"shard:8"', GRES, "all GPUs of a node have the same number of shards, at least two"),
    ],
)
def test_devices_without_a_counterpart_are_reported(
    tmp_path: Path, limits: str, gres: str, path: str, text: str
) -> None:
    gpus, conversion = with_devices(tmp_path, limits, gres)
    (entry,) = [entry for entry in conversion.entries if entry.leaf.path.endswith(path)]
    assert "shards_per_gpu" not in gpus
    assert entry.fate is Fate.NOT_POSSIBLE
    assert text in entry.text


@pytest.mark.parametrize(
    ("limits", "rdma", "others"),
    [
        ("vpc.amazonaws.com/efa: 4", {"resource": "vpc.amazonaws.com/efa", "count": 4}, None),
        (
            "rdma/fabric0: 1, rdma/fabric1: 1, example.com/fpga: 2",
            {"resource": "rdma/fabric0", "count": 1},
            {"rdma/fabric1": 1, "example.com/fpga": 2},
        ),
        ("nvidia.com/sriov-rdma-vf: 8", {"resource": "nvidia.com/sriov-rdma-vf", "count": 8}, None),
    ],
)
def test_devices_for_rdma_let_jobs_lock_memory(
    tmp_path: Path, limits: str, rdma: dict[str, Any], others: dict[str, int] | None
) -> None:
    _, conversion = with_devices(tmp_path, f"nvidia.com/gpu: 8, {limits}")

    (item,) = conversion.cluster["node_sets"]
    assert (item["rdma"], item.get("extra_resources")) == (rdma, others)
    assert parse_cluster(completed(conversion)).node_sets[0].locks_memory
    assert "cannot lock memory" not in conversion.report()


@pytest.mark.parametrize(
    ("annotation", "networks"),
    [
        ("rdma-vf,rdma-vf", ["rdma-vf", "rdma-vf"]),
        ("default/rail-0@net1, default/rail-1@net2", ["default/rail-0", "default/rail-1"]),
        ('[{"name": "a", "namespace": "net"}, {"name": "b"}]', ["net/a", "b"]),
    ],
)
def test_networks_of_pods_are_networks_of_the_node_set(tmp_path: Path, annotation: str, networks: list[str]) -> None:
    text = f"""
nodesets:
  a: {{slurmd: {{}}, metadata: {{annotations: {{k8s.v1.cni.cncf.io/networks: '{annotation}'}}}}}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["node_sets"][0]["networks"] == networks
    assert "Jobs on a cannot lock memory" in conversion.report()


def test_a_container_that_may_lock_memory_lets_jobs_lock_it(tmp_path: Path) -> None:
    context = "{capabilities: {add: [IPC_LOCK, SYS_PTRACE]}}"
    conversion = converted(tmp_path, f"nodesets:\n  a: {{slurmd: {{securityContext: {context}}}}}\n")

    assert conversion.cluster["node_sets"][0]["lock_memory"] is True
    assert [entry.leaf.value for entry in conversion.entries if entry.fate is Fate.NOT_POSSIBLE] == ["SYS_PTRACE"]


def test_a_second_type_is_named_next_to_the_first(tmp_path: Path) -> None:
    gpus, conversion = with_devices(tmp_path, "nvidia.com/gpu: 8", '"gpu:h100:4,gpu:a100:4"')
    (entry,) = [entry for entry in conversion.entries if entry.leaf.path == GRES]
    assert gpus == {"count": 8, "type": "h100"}
    assert entry.text == "type of gpu:h100:4, without gpu:a100:4"
