"""Plans of clusters for a preflight: a program, or a file that describes clusters, run against mocks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from soperator_pulumi.cluster import SlurmCluster
from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.lifecycle.resource import acts_as
from soperator_pulumi.manifests import manifests_of
from soperator_pulumi.operations.access import Access
from soperator_pulumi.operations.kube import Json
from soperator_pulumi.operations.preflight.planned import PlannedCluster
from soperator_pulumi.operations.preflight.surroundings import Surroundings
from soperator_pulumi.platform import Platform, parse_platform
from soperator_pulumi.platform.offers import provided_by
from soperator_pulumi.preflight_outputs import StackOutputs, with_outputs
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.merging import merged
from soperator_pulumi.spec.platform.whole_platform import PlatformSpec
from soperator_pulumi.testing import Deployment, Recorded, Secret, deploy
from soperator_pulumi.yaml_reader import read_yaml

_DOMAIN = ".svc."
_ONE, _SEVERAL, _DEFAULTS = "soperator:cluster", "soperator:clusters", "soperator:defaults"
_PLATFORM = "soperator:platform"
_GPUS = ("nvidia.com/gpu*", "nvidia.com/mig-*")
"""Resources that the GPU Operator's device plugin lists."""
_DEVICE_PLUGINS = {
    "rdmaSharedDevicePlugin": ("configList", "rdma"),
    "sriovDevicePlugin": ("resourceList", "nvidia.com"),
}
"""Device plugins of a NicClusterPolicy: the list of their resources, and the domain of these."""
_IN_TREE = "kubernetes.io/"
_PROJECT = "Pulumi.yaml"
_UNNAMED = "slurm"
"""Name of a component whose description gives none, as in a stack."""


def planned_clusters(deployment: Deployment) -> list[PlannedCluster]:
    """Return the clusters of a program that was run against mocks, as a deployment would apply them."""
    rendered = manifests_of(deployment)
    bodies: list[Json] = [dict(each.body) for each in rendered.objects]
    bodies += [{"apiVersion": "v1", **each.body} for each in rendered.secrets]
    order = _order(deployment)
    bodies.sort(key=lambda body: order.get(_identity(body), -1))
    devices = (*_gpus_to_come(deployment), *_adapters_to_come(bodies))
    every = [_planned(each.inputs, bodies) for each in deployment.recorded if acts_as(each.type, "Prerequisites")]
    drivers = tuple(dict.fromkeys(_csi_drivers(bodies)))
    return [replace(each, devices_to_come=devices, csi_drivers=drivers) for each in every]


def _gpus_to_come(deployment: Deployment) -> tuple[str, ...]:
    """Return the resources of a GPU Operator that the program installs: one that exists has listed its own."""
    releases = {each.parent for each in deployment.resources(":Release")}
    return _GPUS if any(each.name in releases for each in deployment.resources(":GpuOperator")) else ()


def _adapters_to_come(bodies: Sequence[Json]) -> Iterator[str]:
    """Yield the resources of the network adapters in the NicClusterPolicy that the program makes."""
    for body in bodies:
        if body["kind"] == "NicClusterPolicy":
            for plugin, (key, domain) in _DEVICE_PLUGINS.items():
                listed = json.loads(body["spec"].get(plugin, {}).get("config", "{}")).get(key, [])
                yield from (f"{each.get('resourcePrefix', domain)}/{each['resourceName']}" for each in listed)


def _csi_drivers(bodies: Sequence[Json]) -> Iterator[str]:
    """Yield the CSI drivers of the classes and volumes that the program makes."""
    for body in bodies:
        if body["kind"] == "StorageClass" and not str(body["provisioner"]).startswith(_IN_TREE):
            yield str(body["provisioner"])
        elif body["kind"] == "PersistentVolume" and body["spec"].get("csi"):
            yield str(body["spec"]["csi"]["driver"])


def access_of(deployment: Deployment, otherwise: Access) -> list[Access]:
    """Return the access to the Kubernetes of each cluster: that of the program, or `otherwise`."""
    inputs = [each.inputs for each in deployment.recorded if acts_as(each.type, "Prerequisites")]
    own = [Access(*(_revealed(each.get(key)) for key in ("kubeconfig", "context"))) for each in inputs]
    return [otherwise if each == Access() else each for each in own]


def _planned(inputs: Mapping[str, Any], bodies: Sequence[Json]) -> PlannedCluster:
    made = {(body["kind"], body["metadata"]["name"]) for body in bodies}
    named = [each for each in inputs["references"] if (each["kind"], each["name"]) not in made]
    surroundings = Surroundings.model_validate({**inputs, "component": "", "references": named})
    own = [each for each in bodies if _namespace_of(each) == surroundings.namespace or _is_wide(each, surroundings)]
    return PlannedCluster(str(inputs["where"]), surroundings, own, _cluster_domain(own, surroundings.namespace))


def _order(deployment: Deployment) -> dict[tuple[str, ...], int]:
    """Return the place of each object: that of its node set in the program. Manifests have node sets by name."""
    components = {each.name: number for number, each in enumerate(deployment.recorded) if _is_component(each)}
    objects = [each for each in deployment.recorded if isinstance(each.inputs.get("metadata"), Mapping)]
    return {_identity(each.inputs): components.get(each.parent, -1) for each in objects}


def _is_component(resource: Recorded) -> bool:
    return resource.type.endswith(":NodeSet")


def _identity(body: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = body["metadata"]
    return tuple(str(each) for each in (body.get("kind"), metadata.get("namespace"), metadata.get("name")))


def _namespace_of(body: Json) -> str:
    metadata = body["metadata"]
    return str(metadata["name"] if body["kind"] == "Namespace" else metadata.get("namespace", ""))


def _is_wide(body: Json, surroundings: Surroundings) -> bool:
    """Return True for an object of the whole Kubernetes that belongs to the cluster."""
    metadata = body["metadata"]
    owner = (metadata.get("labels") or {}).get(surroundings.owner_label)
    return not metadata.get("namespace") and owner == surroundings.owner


def _cluster_domain(bodies: Sequence[Json], namespace: str) -> str:
    """Return the domain in the search list of Slurm's pods."""
    for body in bodies:
        if body["kind"] == "StatefulSet":
            searches = (body["spec"]["template"]["spec"].get("dnsConfig") or {}).get("searches") or []
            for each in searches:
                return str(each).partition(f".{namespace}{_DOMAIN}")[2] or "cluster.local"
    return "cluster.local"


def _revealed(value: object) -> str | None:
    plain = value.value if isinstance(value, Secret) else value
    return plain if isinstance(plain, str) and plain else None


def planned_of_file(file: Path, stack_outputs: StackOutputs | None = None) -> list[PlannedCluster]:
    """Return the clusters that a file describes.

    Args:
        file: A description of a cluster, or the file of a stack.
        stack_outputs: Outputs of other stacks, which the file may name. Default: none.

    Raises:
        SpecError: the file, or a description in it, has problems.
    """
    content = _mapping(file)
    if not isinstance(config := content.get("config"), Mapping):
        found = _described(str(file), _name_in(content), content, "project", "stack")
        return [replace(each, owner_known="owner" in content) for each in found]
    project = _project(file)
    ours = {key: config[key] for key in (_ONE, _SEVERAL, _PLATFORM) if key in config}
    named = {_DEFAULTS: config.get(_DEFAULTS, _declared(project, _DEFAULTS)), **ours}
    config = with_outputs(named, stack_outputs or {}, str(file))
    defaults = config[_DEFAULTS]
    one = {_ONE: (_name_in(config[_ONE]), config[_ONE])} if _ONE in config else {}
    several = config.get(_SEVERAL) or {}
    if not isinstance(several, Mapping):
        raise SpecError(str(file), [Problem(_SEVERAL, "needs a mapping: clusters by their names.")])
    platform = parse_platform(config[_PLATFORM], _PLATFORM) if _PLATFORM in config else None
    described = one | {f"{_SEVERAL}.{name}": (str(name), own) for name, own in several.items()}
    if not described:
        text = f"describes no cluster. Describe one under {_ONE}, or several by their names under {_SEVERAL}."
        raise SpecError(str(file), [Problem("config", text)])
    stack = file.name.removeprefix("Pulumi.").rpartition(".")[0]
    names = (str(project.get("name", "project")), stack)
    return [
        each
        for key, (name, own) in described.items()
        for each in _described(key, name, merged(defaults, own), *names, platform=platform)
    ]


def _described(
    key: str, name: str, description: object, project: str, stack: str, *, platform: PlatformSpec | None = None
) -> list[PlannedCluster]:
    offers = {} if platform is None else {"platform": provided_by(platform)}
    named = {"name": name, **offers, **description} if isinstance(description, Mapping) else description
    spec = parse_cluster(named, key)

    def program() -> None:
        if platform is None:
            SlurmCluster(name, spec)
        else:
            SlurmCluster(name, spec, platform=Platform("platform", platform))

    deployment = deploy(program, project=project, stack_name=stack)
    return [replace(each, key=key) for each in planned_clusters(deployment)]


def _name_in(description: object) -> str:
    name = description.get("name") if isinstance(description, Mapping) else None
    return name if isinstance(name, str) and name else _UNNAMED


def _project(file: Path) -> Mapping[str, Any]:
    """Return the project of a stack's file, beside it or above it; none where there is none."""
    folders = (file.resolve().parent, *file.resolve().parents)
    found = next((each / _PROJECT for each in folders if (each / _PROJECT).exists()), None)
    return {} if found is None else _mapping(found)


def _declared(project: Mapping[str, Any], key: str) -> object:
    """Return the project's value of a key: a plain one, or that of a declaration."""
    short = key.removeprefix(f"{project.get('name')}:")
    config = project.get("config")
    if not isinstance(config, Mapping):  # the directory of the stacks' files, as Pulumi has it too
        return {}
    value = config.get(key, config.get(short, {}))
    return value.get("value", value.get("default", {})) if isinstance(value, Mapping) else value


def _mapping(file: Path) -> dict[str, Any]:
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(str(file), [Problem("", f"{error.strerror}. Name a file that can be read.")]) from None
    except ValueError:
        raise SpecError(str(file), [Problem("", "is not YAML. Name a description or a stack's file.")]) from None
    if not isinstance(content, dict):
        raise SpecError(str(file), [Problem("", "holds no keys. Name a description or a stack's file.")])
    return content
