"""Plans of clusters for a preflight: a program, or a file that describes clusters, run against mocks."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from soperator_pulumi.cluster import SlurmCluster
from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.lifecycle.resource import acts_as
from soperator_pulumi.operations.preflight.planned import PlannedChart, PlannedCluster, PlannedPlatform
from soperator_pulumi.operations.preflight.prerequisites import PrerequisitesInputs
from soperator_pulumi.operations.preflight.provided_parts import admits_critical_pods
from soperator_pulumi.platform.chart_component import PART_OF
from soperator_pulumi.simulation.deployment import Deployment, Recorded, Secret, deploy, identity_in
from soperator_pulumi.simulation.manifests import manifests_of
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.stack.dry_run import dry_run
from soperator_pulumi.stack.stack_config import name_in
from soperator_pulumi.stack.stack_file import read_mapping, read_stack_file

_DOMAIN = ".svc."
_GPU_OPERATOR = "GpuOperator"
_CHART_PARTS = (_GPU_OPERATOR, "CertManager", "Cilium", "KubePrometheusStack", "MariadbOperator", "NetworkOperator")
"""Components of the platform whose charts give rights to operators."""
_GPUS = ("nvidia.com/gpu*", "nvidia.com/mig-*")
"""Resources that the GPU Operator's device plugin lists."""
_DEVICE_PLUGINS = {
    "rdmaSharedDevicePlugin": ("configList", "rdma"),
    "sriovDevicePlugin": ("resourceList", "nvidia.com"),
}
"""Device plugins of a NicClusterPolicy: the list of their resources, and the domain of these."""
_IN_TREE = "kubernetes.io/"
_AMBIENT = Access()


def planned_clusters(deployment: Deployment) -> list[PlannedCluster]:
    """Return the clusters that a program declares, from a run against mocks."""
    bodies = _bodies(deployment)
    order = _order(deployment)
    bodies.sort(key=lambda body: order.get(_identity(body), -1))
    platform = _platform(deployment, bodies)
    recorded = (resource.inputs for resource in deployment.recorded if acts_as(resource.type, "Associations"))
    qos = {inputs["namespace"]: inputs.get("qos", {}) for inputs in recorded}
    return [
        replace(_planned(resource.inputs, bodies), platform=platform, qos=qos.get(resource.inputs["namespace"], {}))
        for resource in deployment.recorded
        if acts_as(resource.type, "Prerequisites")
    ]


def plans_of(deployment: Deployment, otherwise: Access) -> list[tuple[PlannedCluster | PlannedPlatform, Access]]:
    """Return what a preflight of a program checks, with the access to its Kubernetes: the program's, or `otherwise`.

    These are the program's clusters, or its platforms if it has no cluster.

    Raises:
        SpecError: The program has neither.
    """
    if clusters := planned_clusters(deployment):
        prerequisites = (resource for resource in deployment.recorded if acts_as(resource.type, "Prerequisites"))
        return [*zip(clusters, _accesses((found.inputs for found in prerequisites), otherwise), strict=True)]
    if platforms := [resource for resource in deployment.recorded if acts_as(resource.type, "Platform")]:
        accesses = _accesses((_provider_of(deployment, platform) for platform in platforms), otherwise)
        return [*zip(_planned_platforms(deployment, platforms), accesses, strict=True)]
    text = "it has no SlurmCluster and no Platform, so a preflight has nothing to check. Add one to the program."
    raise SpecError("The stack's program", [Problem("", text)])


def _planned_platforms(deployment: Deployment, platforms: Sequence[Recorded]) -> Iterator[PlannedPlatform]:
    """Yield a plan of every platform, without the resources of the others."""
    families = [_family(deployment, platform) for platform in platforms]
    for platform, family in zip(platforms, families, strict=True):
        others = {identity for other in families for identity in other} - family
        kept = tuple(resource for resource in deployment.recorded if resource.identity not in others)
        own = replace(deployment, recorded=kept)
        plan = _platform(own, _bodies(own))
        yield plan if len(platforms) == 1 else replace(plan, key=f"Platform {platform.name!r}")


def _family(deployment: Deployment, component: Recorded) -> set[tuple[str, str]]:
    """Return the identities of a component and of the resources in it."""
    found = {component.identity}
    for resource in deployment.recorded:  # parents come first
        if _parent(resource) in found:
            found.add(resource.identity)
    return found


def _parent(resource: Recorded) -> tuple[str, str] | None:
    return identity_in(resource.request.parent) if resource.request.parent else None


def _provider_of(deployment: Deployment, platform: Recorded) -> Mapping[str, Any]:
    """Return the inputs of a platform's own or given provider of Kubernetes; none if it has the stack's default one."""
    given = platform.request.providers.get("kubernetes", "").rpartition("::")[0]  # without its id
    for provider in deployment.resources("pulumi:providers:kubernetes"):
        if _parent(provider) == platform.identity or (given and provider.identity == identity_in(given)):
            return provider.inputs
    return {}


def _bodies(deployment: Deployment) -> list[Json]:
    rendered = manifests_of(deployment)
    bodies: list[Json] = [dict(object_.body) for object_ in rendered.objects]
    return [*bodies, *({"apiVersion": "v1", **secret.body} for secret in rendered.secrets)]


def _platform(deployment: Deployment, bodies: Sequence[Json]) -> PlannedPlatform:
    charts = (
        PlannedChart(part, _namespace_of_release(release))
        for part in _CHART_PARTS
        for release in _releases(deployment, part)
    )
    # A GPU Operator that exists has already listed its resources on the machines.
    gpus = _GPUS if _releases(deployment, _GPU_OPERATOR) else ()
    return PlannedPlatform(
        charts=tuple(dict.fromkeys(charts)),
        objects=tuple(body for body in bodies if PART_OF.items() <= (body["metadata"].get("labels") or {}).items()),
        devices_to_come=(*gpus, *_adapters_to_come(bodies)),
        csi_drivers=tuple(dict.fromkeys(_csi_drivers(bodies))),
        critical_namespaces=tuple(dict.fromkeys(_critical_namespaces(deployment, bodies))),
    )


def _releases(deployment: Deployment, *components: str) -> list[Recorded]:
    """Return the releases of components of the platform that the program installs, without existing ones."""
    parts = {part.name for component in components for part in deployment.resources(f":{component}")}
    return [resource for resource in deployment.resources(":Release") if resource.parent in parts]


def _namespace_of_release(release: Recorded) -> str:
    return str(release.inputs.get("namespace") or "default")


def _critical_namespaces(deployment: Deployment, bodies: Sequence[Json]) -> Iterator[str]:
    """Yield the namespaces of GPU Operators in which the program itself makes no quota for their pods."""
    quotas = [body for body in bodies if body["kind"] == "ResourceQuota" and admits_critical_pods(body)]
    admitted = {_namespace_of(quota) for quota in quotas}
    namespaces = map(_namespace_of_release, _releases(deployment, _GPU_OPERATOR))
    yield from (namespace for namespace in namespaces if namespace not in admitted)


def _adapters_to_come(bodies: Sequence[Json]) -> Iterator[str]:
    """Yield the resources of network adapters in the NicClusterPolicy that the program creates."""
    for body in bodies:
        if body["kind"] == "NicClusterPolicy":
            for plugin, (key, domain) in _DEVICE_PLUGINS.items():
                listed = json.loads(body["spec"].get(plugin, {}).get("config", "{}")).get(key, [])
                yield from (f"{item.get('resourcePrefix', domain)}/{item['resourceName']}" for item in listed)


def _csi_drivers(bodies: Sequence[Json]) -> Iterator[str]:
    """Yield the CSI drivers of classes and volumes that the program creates."""
    for body in bodies:
        if body["kind"] == "StorageClass" and not str(body["provisioner"]).startswith(_IN_TREE):
            yield str(body["provisioner"])
        elif body["kind"] == "PersistentVolume" and body["spec"].get("csi"):
            yield str(body["spec"]["csi"]["driver"])


def _accesses(inputs: Iterable[Mapping[str, Any]], otherwise: Access) -> list[Access]:
    """Return the access that inputs name, or `otherwise`."""
    own = [Access(*(_revealed(given.get(key)) for key in ("kubeconfig", "context"))) for given in inputs]
    return [otherwise if access == Access() else access for access in own]


def _planned(inputs: Mapping[str, Any], bodies: Sequence[Json]) -> PlannedCluster:
    made = {(body["kind"], body["metadata"]["name"]) for body in bodies}
    named = [reference for reference in inputs["references"] if (reference["kind"], reference["name"]) not in made]
    prerequisites = PrerequisitesInputs.model_validate({**inputs, "component": "", "references": named})
    own = [body for body in bodies if _namespace_of(body) == prerequisites.namespace or _is_wide(body, prerequisites)]
    return PlannedCluster(str(inputs["where"]), prerequisites, own, _cluster_domain(own, prerequisites.namespace))


def _order(deployment: Deployment) -> dict[tuple[str, ...], int]:
    """Return every object's position: that of its node set in the program, as manifests sort node sets by name."""
    components = {
        resource.name: number
        for number, resource in enumerate(deployment.recorded)
        if resource.type.endswith(":NodeSet")
    }
    objects = [resource for resource in deployment.recorded if isinstance(resource.inputs.get("metadata"), Mapping)]
    return {_identity(object_.inputs): components.get(object_.parent, -1) for object_ in objects}


def _identity(body: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = body["metadata"]
    return tuple(str(item) for item in (body.get("kind"), metadata.get("namespace"), metadata.get("name")))


def _namespace_of(body: Json) -> str:
    metadata = body["metadata"]
    return str(metadata["name"] if body["kind"] == "Namespace" else metadata.get("namespace", ""))


def _is_wide(body: Json, prerequisites: PrerequisitesInputs) -> bool:
    """Return True for a cluster-scoped object that belongs to the cluster."""
    metadata = body["metadata"]
    owner = (metadata.get("labels") or {}).get(prerequisites.owner_label)
    return not metadata.get("namespace") and owner == prerequisites.owner


def _cluster_domain(bodies: Sequence[Json], namespace: str) -> str:
    """Return the cluster domain in the search list of Slurm's pods."""
    for body in bodies:
        if body["kind"] == "StatefulSet":
            searches = (body["spec"]["template"]["spec"].get("dnsConfig") or {}).get("searches") or []
            for search in searches:
                return str(search).partition(f".{namespace}{_DOMAIN}")[2] or "cluster.local"
    return "cluster.local"


def _revealed(value: object) -> str | None:
    plain = value.value if isinstance(value, Secret) else value
    return plain if isinstance(plain, str) and plain else None


def plans_of_file(
    file: Path,
    stack_outputs: Mapping[str, Mapping[str, str]] | None = None,
    access: Access = _AMBIENT,
    adapted: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> list[tuple[PlannedCluster | PlannedPlatform, Access]]:
    """Return the clusters that a file describes, with the Kubernetes that a deployment of the file would use.

    A stack's file is deployed by its program against mocks, so that it is refused here for the same reasons. A stack
    without a cluster has its platform instead.

    Args:
        file: A description of a cluster, or the file of a stack.
        stack_outputs: Outputs of other stacks, by stack and name, which the file may name. Default: none.
        access: Kubernetes in place of the one that the file names. Default: that one; the ambient one if it names none.
        adapted: Changes the configuration of the stack, or the description, before it is planned. Default: no change.

    Raises:
        SpecError: The file, or a description in it, has problems, or it describes no cluster and no platform.
    """
    stack = read_stack_file(file, stack_outputs or {}, access)
    if stack is None:
        return [(cluster, access) for cluster in _described(file, adapted(read_mapping(file)))]
    stack = replace(stack, config=adapted(stack.config))
    # The access of Pulumi's own Kubernetes resources applies if the stack names no other.
    values = (stack.config.get(f"kubernetes:{key}") for key in ("kubeconfig", "context"))
    ambient = Access(*(value if isinstance(value, str) and value else None for value in values))
    return plans_of(dry_run(stack), ambient)


def _described(file: Path, content: Mapping[str, Any]) -> list[PlannedCluster]:
    """Return the cluster of a stand-alone description, without a stack."""
    name = name_in(content)
    spec = parse_cluster({"name": name, **content}, str(file))
    deployment = deploy(lambda: SlurmCluster(name, spec), project="project", stack_name="stack")
    known = "owner" in content
    return [
        replace(planned_cluster, key=str(file), owner_known=known) for planned_cluster in planned_clusters(deployment)
    ]
