"""Outputs of a platform that are defaults of clusters: names of resources, the runtime class, the storage class."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import StrictBool

from soperator_pulumi.spec.storage import MAX_GIB
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName, ResourceName
from soperator_pulumi.spec.validation.base import Model, whole


class ProvidedSpec(Model):
    """Names that a platform offers, which are defaults of a cluster."""

    gpu_resource: ResourceName | None = None
    """Resource of whole GPUs. Default of `gpus.resource` of node sets."""
    rdma_resources: tuple[ResourceName, ...] = ()
    """Resources of RDMA devices. A single one is the default of `rdma.resource` of node sets."""
    runtime_class: ObjectName | None = None
    """RuntimeClass of pods with GPUs. Default of `runtime_class` of node sets whose GPUs have the vendor of
    `gpu_resource`."""
    storage_class: Maybe[ObjectName] | None = None
    """StorageClass of the shared volume. Default of `jail.storage.storage_class`."""
    static_volume: Maybe[ObjectName] | None = None
    """PersistentVolume of the shared volume. Default of `jail.storage.static_volume`."""
    existing_claim: Maybe[ObjectName] | None = None
    """Claim of the shared volume, in the cluster's namespace. Default of `jail.storage.existing_claim`."""
    size_gib: Annotated[int, whole(1, MAX_GIB)] | None = None
    """Size of the shared volume in GiB. Default of `jail.storage.size_gib`."""
    kube_prometheus_stack: StrictBool = False
    """The platform installs the kinds of Prometheus' operator, so `metrics.pod_monitor` and `metrics.alerts` do not
    need them before. Default: false."""
    mariadb_operator: StrictBool = False
    """The platform installs the kinds of MariaDB's operator, so `accounting.database.mariadb_operator` does not need
    them before. Default: false."""


VOLUME_KEYS = frozenset({"storage_class", "existing_claim", "static_volume"})
"""Keys that choose the jail's volume."""


def with_defaults_of_platform(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster's description with the names under `platform` filled in as defaults.

    Malformed parts stay as they are, for the checks of the spec.
    """
    found, offers = dict(description), description.get("platform")
    if isinstance(offers, ProvidedSpec):
        offers = offers.model_dump()
    if not isinstance(offers, Mapping):
        return found
    node_sets = found.get("node_sets")
    if isinstance(node_sets, (list, tuple)):
        found["node_sets"] = [_node_set(node_set, offers) for node_set in node_sets]
    jail = found.get("jail", {})
    offered = {key: offers[key] for key in VOLUME_KEYS if offers.get(key) is not None}
    if offered and isinstance(jail, Mapping):
        storage = jail.get("storage", {})
        if isinstance(storage, Mapping) and all(storage.get(key) is None for key in VOLUME_KEYS):
            size = {} if offers.get("size_gib") is None else {"size_gib": offers["size_gib"]}
            found["jail"] = {**jail, "storage": {**size, **storage, **offered}}
    return found


def _node_set(description: object, offers: Mapping[str, Any]) -> object:
    if not isinstance(description, Mapping):
        return description
    found = dict(description)
    gpus, rdma = found.get("gpus"), found.get("rdma")
    rdma_resources = offers.get("rdma_resources")
    if isinstance(gpus, Mapping):
        offered = offers.get("gpu_resource")
        if offered is not None:
            found["gpus"] = {"resource": offered, **gpus}
        # GPUs of another vendor need another runtime: with NVIDIA's, a worker with AMD's GPUs would not start.
        alike = offered is None or _vendor(found["gpus"]["resource"]) == _vendor(offered)
        if offers.get("runtime_class") is not None and alike:
            found.setdefault("runtime_class", offers["runtime_class"])
    if isinstance(rdma, Mapping) and isinstance(rdma_resources, (list, tuple)) and len(rdma_resources) == 1:
        found["rdma"] = {"resource": rdma_resources[0], **rdma}
    return found


def _vendor(resource: object) -> str:
    return str(resource).partition("/")[0]
