"""Names of resources and classes that a platform offers to clusters."""

from typing import Any

from soperator_pulumi.spec.platform.platform_spec import PlatformSpec
from soperator_pulumi.spec.platform.provided import ProvidedSpec


def provided_by(spec: PlatformSpec) -> ProvidedSpec:
    """Return what a platform offers to clusters."""
    gpus, network = spec.gpu_operator, spec.network_operator
    return ProvidedSpec(
        gpu_resource=None if gpus is None else gpus.resource,
        runtime_class=None if gpus is None else gpus.runtime_class,
        rdma_resources=() if network is None else network.resources,
        kube_prometheus_stack=spec.kube_prometheus_stack is not None,
        mariadb_operator=spec.mariadb_operator is not None,
        **_volume_of(spec),
    )


def _volume_of(spec: PlatformSpec) -> dict[str, Any]:
    """Return the names of the shared volume as plain strings: components already order the resources."""
    storage = spec.shared_storage
    if storage is None:
        return {"storage_class": spec.storage_class}
    if storage.claim is not None or storage.existing_claim is not None:
        return {"existing_claim": storage.existing_claim if storage.claim is None else storage.claim.name}
    if storage.storage_class is not None or storage.existing_class is not None:
        return {"storage_class": storage.existing_class or storage.name, "size_gib": storage.size_gib}
    return {"static_volume": storage.name, "size_gib": storage.size_gib}
