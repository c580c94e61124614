"""GPUs and other devices of node sets, from a pod's resources and Slurm's names for them."""

import json
import re
from collections.abc import Sequence
from typing import Any

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.slurm_text import settings
from soperator_pulumi.convert.yaml_tree import Leaf, Section
from soperator_pulumi.spec.gpus import Vendor

WRITTEN_BY_PODS = "pods here write gres.conf from the devices that they have"

_SHORT_NAME = "gpu"
"""Key that soperator's chart has for `nvidia.com/gpu`."""

_DEFAULT = f"{Vendor.NVIDIA}/gpu"
_MIG = f"{Vendor.NVIDIA}/mig-"
_PAGES = "hugepages-"

_RDMA = re.compile(r"vpc\.amazonaws\.com/efa|rdma/.+|.+/.*(rdma|hca|roce|infiniband|hostdev|mlnx).*", re.IGNORECASE)
"""Names that device plugins give to RDMA devices: AWS EFA, Mellanox' shared devices, SR-IOV, host devices."""

NETWORKS = "k8s.v1.cni.cncf.io/networks"
"""Annotation by which a pod names its secondary networks (Multus)."""

_WHOLE_GPU = re.compile(rf"({'|'.join(map(re.escape, Vendor))})/gpu")
_SHARD = "shard"
_GRES = re.compile(r"(?P<name>gpu|shard)(:(?P<type>(?!\d+$)[A-Za-z0-9][A-Za-z0-9_.-]*))?(:(?P<count>\d+))?")


def put_devices(work: Conversion, item: dict[str, Any], limits: Section, requests: Section | None = None) -> None:
    """Write the devices among the resources of slurmd's container into a node set.

    Args:
        work: The conversion.
        item: The node set's item in the stack.
        limits: Resources by name.
        requests: The requests, which are equal in every pod that Kubernetes accepts.
    """
    for name, value in limits.entries():
        if value and _put(work, item, name, value) and requests is not None:
            work.needless(requests.at(name), "same as the limits")


def put_gres(work: Conversion, item: dict[str, Any], text: str, leaves: Sequence[Leaf]) -> None:
    """Write the GPUs and shards of a node's `Gres`, unless the devices have set them."""
    gpus: dict[str, Any] = item.get("gpus", {})
    entries = re.sub(r"\([^)]*\)", "", text).split(",")
    matches = [match for entry in entries if (match := _GRES.fullmatch(entry))]
    whole = [match for match in matches if match["name"] == "gpu" and match["type"] not in gpus.get("mig", {})]
    shards = [match for match in matches if match["name"] == _SHARD]
    lost = [entry for entry in entries if not _GRES.fullmatch(entry)] + [
        match[0] for match in (*whole[1:], *shards[1:])
    ]
    if lost:
        reason = "generic resources here are GPUs; jobs share all others (extra_resources)"
        work.cannot(leaves, f"{reason}: {', '.join(lost)}" if len(entries) > 1 else reason)
    left_out = f", without {', '.join(lost)}" if lost else ""
    for match in whole[:1]:
        _put_gpus(work, item, match, leaves, left_out)
    for match in shards[:1]:
        _put_shards(work, item, int(match["count"] or 1), leaves)
    count = item["gpus"]["count"].value if "count" in item.get("gpus", {}) else 0
    if any(int(match["count"] or 1) != count for match in whole):
        work.cannot(leaves, f"the GPUs of the pod count: {count}")
    work.needless(leaves, "same as the pod's resources")


def put_gpu_type(work: Conversion, item: dict[str, Any], gres_conf: Section) -> None:
    """Write the type of a node's GPUs, if all lines of its gres.conf give the same."""
    found = [
        (line, {setting.key.lower(): setting.value for setting in settings(line.text())}) for line in gres_conf.items()
    ]
    types = {values.get("type", "") for _, values in found if values.get("name") == "gpu"}
    gpus = item.get("gpus", {})
    if "count" not in gpus or "type" in gpus or len(types) != 1 or not _GRES.fullmatch(f"gpu:{next(iter(types))}"):
        return
    for line, values in found:
        if values.get("type") in types:
            work.put(gpus, "type", values["type"], line, "pods here write gres.conf from the devices that they have")


def _put_gpus(
    work: Conversion, item: dict[str, Any], match: re.Match[str], leaves: Sequence[Leaf], left_out: str
) -> None:
    gpus = work.mapping("gpus", of=item)
    if match["type"]:
        work.put(gpus, "type", match["type"], leaves, f"type of {match[0]}{left_out}")
    if "count" not in gpus:
        work.put(gpus, "count", int(match["count"] or 1), leaves, f"number of {match[0]}{left_out}")


def _put_shards(work: Conversion, item: dict[str, Any], shards: int, leaves: Sequence[Leaf]) -> None:
    gpus = item.get("gpus", {})
    count = gpus["count"].value if "count" in gpus else 0
    if count and shards % count == 0 and shards // count > 1:
        work.put(gpus, "shards_per_gpu", shards // count, leaves, f"{shards} shards of {count} GPUs")
    else:
        work.cannot(leaves, "all GPUs of a node have the same number of shards, at least two (gpus.shards_per_gpu)")


def _put(work: Conversion, item: dict[str, Any], name: str, value: Section) -> bool:
    """Write one resource; return False if it is not a device."""
    if name.startswith(_PAGES):
        work.put(work.mapping("huge_pages", of=item), name.removeprefix(_PAGES), value.text(), value)
        return True
    if not value.text().isdecimal() or ("/" not in name and name != _SHORT_NAME):
        return False
    number = int(value.text())
    if not number:
        work.needless(value, "zero devices")
        return True
    if name.startswith(_MIG):
        work.put(work.mapping("gpus", "mig", of=item), name.removeprefix(_MIG), number, value)
    elif name == _SHORT_NAME or _WHOLE_GPU.fullmatch(name):
        gpus = work.mapping("gpus", of=item)
        if "count" in gpus:
            work.cannot(value, "a node has GPUs of one vendor")
            return True
        work.put(gpus, "count", number, value)
        if name not in {_SHORT_NAME, _DEFAULT}:
            work.put(gpus, "resource", name, value)
    elif _RDMA.fullmatch(name) and "rdma" not in item:
        work.put(work.mapping("rdma", of=item), "resource", name, value)
        work.put(item["rdma"], "count", number, value)
    else:
        work.put(work.mapping("extra_resources", of=item), name, number, value)
    return True


def put_networks(work: Conversion, item: dict[str, Any], annotation: Section) -> None:
    """Write the secondary networks of pods, which Multus takes as names or as JSON."""
    text = annotation.text().strip()
    try:
        given = json.loads(text) if text.startswith("[") else [name.strip() for name in text.split(",") if name.strip()]
        names = [_network(network) for network in given]
    except (ValueError, TypeError, KeyError):
        work.cannot(annotation, "not a list of networks as Multus takes it")
        return
    plain = text == ",".join(names)
    for name in names:
        how = "" if plain else "interfaces are net1, net2 and so on, in this order"
        work.listed("networks", of=item).append(work.value(name, annotation, how))


def _network(given: str | dict[str, str]) -> str:
    if isinstance(given, str):
        return given.partition("@")[0]
    return f"{given['namespace']}/{given['name']}" if given.get("namespace") else given["name"]


def put_locked_memory(work: Conversion, item: dict[str, Any], context: Section) -> None:
    """Let jobs lock memory if the container of slurmd may."""
    for capability in context.at("capabilities", "add").items():
        if capability.text().removeprefix("CAP_") != "IPC_LOCK":
            continue
        if "rdma" in item:
            work.needless(capability, "jobs of nodes with rdma may lock memory")
        else:
            work.put(item, "lock_memory", True, capability, "jobs may lock memory (IPC_LOCK)")


def warn_of_unlocked_memory(work: Conversion) -> None:
    """Add a remark about node sets whose jobs may need RDMA, and cannot lock memory."""
    node_sets = work.stack.get("node_sets", [])
    names = [
        str(item["name"].value)
        for item in (node_sets if isinstance(node_sets, list) else [])
        if item.keys() & {"gpus", "networks"} and not item.keys() & {"rdma", "lock_memory"}
    ]
    if names:
        work.remarks.append(
            f"Jobs on {', '.join(names)} cannot lock memory, which RDMA needs: if these machines have InfiniBand or "
            "RoCE, set `rdma`, or `lock_memory: true`."
        )
