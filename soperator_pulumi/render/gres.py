"""Generic resources (GRES) of Slurm in files and registrations, from the GPUs of node sets."""

from collections.abc import Sequence

from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.gpus import GpusSpec
from soperator_pulumi.spec.node_set import CpuLayout, NodeSetSpec


def gres_types(spec: ClusterSpec) -> tuple[str, ...]:
    """Return slurm.conf's GresTypes."""
    gpus = _all(spec)
    return (*(["gpu"] if gpus else []), *(["shard"] if any(gpu.shards for gpu in gpus) else []))


def tracked_gres(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the generic resources of slurm.conf's AccountingStorageTRES: all names, and all types of GPUs.

    With types only, jobs that name no type would not be counted (slurm.conf(5)).
    """
    types = {kind for declared in _all(spec) for kind in declared.types if kind}
    of_types = [f"gpu:{kind}" for kind in sorted(types)]
    return tuple(name for kind in gres_types(spec) for name in (kind, *(of_types if kind == "gpu" else ())))


def job_defaults(members: Sequence[NodeSetSpec]) -> dict[str, str]:
    """Return the CPUs and memory per GPU, for jobs that request only GPUs.

    Args:
        members: Node sets of a partition. The smallest share fits all of their nodes.
    """
    with_gpus = [(member, member.gpus.total) for member in members if member.gpus]
    if not with_gpus:
        return {}
    shares = {
        "DefCpuPerGPU": min(_whole_cores(node_set, node_set.job_cpus // count) for node_set, count in with_gpus),
        "DefMemPerGPU": min(node_set.scheduled_memory_mib // count for node_set, count in with_gpus),
    }
    # A share of 0 is none. With 1 in its place no job could have all GPUs of a node.
    return {name: str(share) for name, share in shares.items() if share}


def start_arguments(gpus: GpusSpec | None, layout: CpuLayout | None = None) -> list[str]:
    """Return the devices that a pod must find at its start, as arguments of start.sh.

    Args:
        gpus: GPUs of the node set.
        layout: CPUs of its machines. Default: not known, so that GPUs have no cores.
    """
    if gpus is None:
        return []
    files = f"gpus={gpus.vendor.name.lower()}:{gpus.count}:{gpus.type or ''}"
    instances = [f"mig={profile}:{count}" for profile, count in sorted(gpus.mig.items())]
    shards = [f"shards_per_gpu={gpus.shards_per_gpu}"] if gpus.shards_per_gpu else []
    counted_in = [f"cpu_layout={layout.sockets}:{layout.cores_per_socket}"] if layout else []
    sockets = [f"gpu_sockets={','.join(map(str, gpus.sockets))}"] if gpus.sockets else []
    return [files, *instances, *shards, *counted_in, *sockets]


def _whole_cores(node_set: NodeSetSpec, cpus: int) -> int:
    """Return CPUs rounded down to whole cores: Slurm rounds requests up, and the last GPUs would have no cores."""
    return cpus // node_set.cpus_per_core * node_set.cpus_per_core


def _all(spec: ClusterSpec) -> list[GpusSpec]:
    return [node_set.gpus for node_set in spec.node_sets if node_set.gpus]
