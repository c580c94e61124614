"""Plan of a cluster: the objects that a deployment would apply, and their pods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight.prerequisites import PrerequisitesInputs
from soperator_pulumi.spec import login
from soperator_pulumi.spec.types.quantity import amount

COMPONENT_LABEL = "app.kubernetes.io/component"
NODE_SET_LABEL = "soperator-pulumi/node-set"
WORKER = "worker"

_WITH_PODS = ("StatefulSet", "Job")
_PLACES = {
    "jail-populate": "jail.populate",
    "container-images": "jail.populate",
    "admin": "jail.admin_shell",
    "accounting": "accounting.slurmdbd",
    "database": "accounting.database.own",
}
"""Fields of the spec by their pods' component, if the names differ."""


@dataclass(frozen=True)
class PlannedPods:
    """Pods of one StatefulSet or Job."""

    place: str
    """Field of the spec that describes them: `node_sets[0]`, `controller`, `login` or `jail.populate`."""
    component: str
    replicas: int
    template: Json
    """Template of the pods, as it would be applied."""

    @property
    def spec(self) -> Json:
        """Specification of the pods."""
        found: Json = self.template["spec"]
        return found

    @property
    def containers(self) -> list[Json]:
        """All containers, init containers included."""
        return [*(self.spec.get("initContainers") or []), *self.spec["containers"]]

    @property
    def requests(self) -> dict[str, Decimal]:
        """Resources that a machine must have free for one pod, by name, as the scheduler counts them."""
        init = self.spec.get("initContainers") or []
        sidecars = [item for item in init if item.get("restartPolicy") == "Always"]
        running = _sum(map(_requests, [*self.spec["containers"], *sidecars]))
        first = [_requests(item) for item in init if item not in sidecars]
        names = {*running, *(name for entry in first for name in entry)}
        return {name: max(running.get(name, Decimal(0)), *(entry.get(name, Decimal(0)) for entry in first), Decimal(0))
                for name in sorted(names)}  # fmt: skip

    @property
    def main_requests(self) -> dict[str, Decimal]:
        """Resources of the container whose size the spec gives, by name."""
        return _requests(self.spec["containers"][0])

    def without_size(self) -> "PlannedPods":
        """Return the pods as if their main container requested no CPU and no memory, only devices."""
        main, *others = self.spec["containers"]
        resources = {
            kind: {name: value for name, value in amounts.items() if name not in {"cpu", "memory"}}
            for kind, amounts in (main.get("resources") or {}).items()
        }
        spec = {**self.spec, "containers": [{**main, "resources": resources}, *others]}
        return replace(self, template={**self.template, "spec": spec})


@dataclass(frozen=True)
class PlannedChart:
    """A chart of the platform that a program installs."""

    part: str
    """Component of the platform, such as `CertManager`."""
    namespace: str
    """Namespace of the chart, in whose Secrets Helm keeps its releases."""


@dataclass(frozen=True)
class PlannedPlatform:
    """Parts that a program installs for all of its clusters, or without any."""

    key: str = "soperator:platform"
    """Name of the description, as a prefix of places."""
    charts: tuple[PlannedChart, ...] = ()
    """Charts that the program installs, without parts that exist already."""
    objects: tuple[Json, ...] = ()
    """Objects that the program makes for the platform next to the charts: classes, volumes, policies, networks."""
    devices_to_come: tuple[str, ...] = ()
    """Resources of device plugins that the program itself installs, such as the GPU Operator's. `*` in a name matches
    any text."""
    csi_drivers: tuple[str, ...] = ()
    """CSI drivers of classes and volumes that the program makes."""
    critical_namespaces: tuple[str, ...] = ()
    """Namespaces in which the program installs pods of a critical priority class, and makes no quota for them."""


@dataclass(frozen=True)
class PlannedCluster:
    """A cluster as its program describes it."""

    key: str
    """Name of the description, as a prefix of places: `soperator:clusters.hpc`."""
    prerequisites: PrerequisitesInputs
    objects: Sequence[Json]
    """Objects that would be applied, in order. Secrets have only kind and metadata."""
    cluster_domain: str = "cluster.local"
    """Domain of the names of Services."""
    qos: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of QoS by the field of the spec that has them; empty without accounting."""
    platform: PlannedPlatform = PlannedPlatform()
    """Parts that the program installs next to its clusters."""
    owner_known: bool = True
    """False if only the description is known: an existing namespace then counts as the cluster's own."""

    @cached_property
    def pods(self) -> list[PlannedPods]:
        """Pods of all StatefulSets and Jobs, node sets in the order of the spec."""
        return [*_pods(self.objects)]

    @property
    def workers(self) -> list[PlannedPods]:
        """Pods of the node sets."""
        return [pod for pod in self.pods if pod.component == WORKER]

    @property
    def constrains(self) -> bool:
        """True if Slurm limits jobs to their resources by cgroups."""
        files = (config_map.get("data") or {} for config_map in self.of_kind("ConfigMap"))
        return not any("CgroupPlugin=disabled" in data.get("cgroup.conf", "") for data in files)

    def of_kind(self, kind: str) -> list[Json]:
        """Return the objects of a kind."""
        return [object_ for object_ in self.objects if object_["kind"] == kind]


def _pods(objects: Sequence[Json]) -> Iterator[PlannedPods]:
    node_sets = 0
    for body in objects:
        if body["kind"] not in _WITH_PODS:
            continue
        template = body["spec"]["template"]
        component = str((template["metadata"].get("labels") or {}).get(COMPONENT_LABEL, body["metadata"]["name"]))
        place = _PLACES.get(component, login.place(component) or component)
        if component == WORKER:
            place, node_sets = f"node_sets[{node_sets}]", node_sets + 1
        yield PlannedPods(place, component, int(body["spec"].get("replicas", 1)), template)


def _requests(container: Json) -> dict[str, Decimal]:
    given = container.get("resources") or {}
    both: Mapping[str, object] = {**(given.get("limits") or {}), **(given.get("requests") or {})}
    return {name: amount(str(value)) for name, value in both.items()}


def _sum(parts: Iterator[dict[str, Decimal]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for requests in parts:
        for name, value in requests.items():
            total[name] = total.get(name, Decimal(0)) + value
    return total
