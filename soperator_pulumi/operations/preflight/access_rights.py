"""Rights of the caller: for the kinds that the program applies, and for the calls of this package's resources."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.api_server import OPERATORS
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned
from soperator_pulumi.operations.preflight.planned import PlannedChart

CHECK = "rights"

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

_APPLIES = ("create", "get", "patch", "delete")
"""Verbs that Pulumi's provider uses for every object."""

_KEEPS_RELEASES = ("create", "get", "list", "update", "delete")
"""Verbs that Helm uses on its Secrets."""

_AWAITS = ("list", "watch")
"""Verbs that Pulumi's provider uses to wait for an object. Without them it reports a time-out."""

_GIVES_RIGHTS = ("escalate", "bind")
"""Verbs without which the API server lets no one make a role with rights that they don't have themselves:
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping."""

_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions", "")
_WEBHOOKS = tuple((_ADMISSION, f"{kind}webhookconfigurations", "") for kind in ("mutating", "validating"))
_NEWER = tuple((_ADMISSION, f"validatingadmissionpolic{end}", "") for end in ("ies", "ybindings"))
"""Kinds that only newer versions of a chart have."""


def _roles_in(namespace: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((_RBAC, resource, namespace) for resource in ("roles", "rolebindings"))


_OUTSIDE: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "CertManager": (_DEFINITIONS, *_WEBHOOKS, *_roles_in("kube-system")),
    "Cilium": (("", "namespaces", ""), *_roles_in("cilium-secrets")),
    "GpuOperator": (_DEFINITIONS, *_NEWER, ("nvidia.com", "clusterpolicies", "")),
    "KubePrometheusStack": (_DEFINITIONS, *_WEBHOOKS, ("", "services", "kube-system")),
    "MariadbOperator": (_DEFINITIONS, *_WEBHOOKS),
    "NetworkOperator": (_DEFINITIONS, ("nfd.k8s-sigs.io", "nodefeaturerules", "")),
}
"""Objects that the charts of the platform's parts make outside of their namespaces, in addition to ClusterRoles: API
group, resource, and namespace. docs/platform.md, Rights, has their sources."""

_OF_PLATFORM: Mapping[str, tuple[str, str]] = {
    "HostDeviceNetwork": ("mellanox.com", "hostdevicenetworks"),
    "IPPool": ("nv-ipam.nvidia.com", "ippools"),
    "IPoIBNetwork": ("mellanox.com", "ipoibnetworks"),
    "MacvlanNetwork": ("mellanox.com", "macvlannetworks"),
    "Namespace": ("", "namespaces"),
    "NicClusterPolicy": ("mellanox.com", "nicclusterpolicies"),
    "PersistentVolume": ("", "persistentvolumes"),
    "PersistentVolumeClaim": ("", "persistentvolumeclaims"),
    "Secret": ("", "secrets"),
    "StorageClass": ("storage.k8s.io", "storageclasses"),
}
"""API groups and resources of the objects that a platform makes itself, by kind. The server can't map them: the same
`up` may install their definitions."""

_OPTIONAL = {
    "events",
    "endpointslices",
    "services",
    "storageclasses",
    "priorityclasses",
    "persistentvolumes",
    "secrets",
}
"""Resources that a deployment can do without, with a less helpful message or one more value in the spec."""


@dataclass(frozen=True)
class LiveCall:
    """Verbs on one resource of Kubernetes."""

    resource: str
    """Resource, with its subresource: `pods/exec`."""
    verbs: tuple[str, ...]
    purpose: str
    group: str = ""
    namespace: str | None = None
    """Namespace, if it is not the cluster's; empty for a cluster-scoped resource."""


LIVE_CALLS = (
    LiveCall("namespaces", ("get",), "pin a cluster to its namespace", namespace=""),
    LiveCall("pods", ("get", "list", "patch", "delete"), "wait for pods, and recreate them"),
    LiveCall("pods/exec", ("get", "create"), "ask Slurm, and drain its nodes"),
    LiveCall("pods/log", ("get",), "report the reason of a failure"),
    LiveCall("events", ("list",), "report the reason of a pod that does not start"),
    LiveCall("configmaps", ("get", "create", "patch", "delete"), "apply files of Slurm, and restore them"),
    LiveCall("secrets", ("get", "create", "patch", "delete"), "check keys of the spec, apply files of slurmdbd"),
    LiveCall("persistentvolumeclaims", ("get", "list"), "find claims of other clusters"),
    LiveCall("statefulsets", ("get", "list", "patch"), "drain the nodes of a node set", group="apps"),
    LiveCall("controllerrevisions", ("get",), "refuse a downgrade after an upgrade has begun", group="apps"),
    LiveCall("jobs", ("get", "list", "create", "patch", "delete"), "fill, switch and remove trees", group="batch"),
    LiveCall("cronjobs", ("get",), "list, make and restore dumps of accounting", group="batch"),
    LiveCall("leases", ("get", "create", "patch"), "let one planner drain at a time", group="coordination.k8s.io"),
    LiveCall("services", ("get",), "close the Kubernetes API to jobs", namespace="default"),
    LiveCall(
        "endpointslices",
        ("list",),
        "close the Kubernetes API to jobs",
        group="discovery.k8s.io",
        namespace="default",
    ),
    LiveCall("storageclasses", ("get", "list"), "check the classes of the spec", "storage.k8s.io", ""),
    LiveCall("priorityclasses", ("get",), "check the classes of the spec", "scheduling.k8s.io", ""),
    LiveCall("persistentvolumes", ("get",), "check the volumes of the spec", namespace=""),
)
"""Calls that the package's resources make on a live cluster, in addition to applying the program's objects.

`tests/unit/operations/preflight/test_access_rights.py` compares the table with the sources.
"""


@dataclass(frozen=True)
class Right:
    """A verb on a resource."""

    group: str
    resource: str
    """Resource, with its subresource."""
    namespace: str
    """Namespace; empty for a cluster-scoped resource."""
    verb: str

    def review(self) -> Json:
        """Return the access review to send to the API server."""
        resource, _, subresource = self.resource.partition("/")
        attributes = {"group": self.group, "resource": resource, "namespace": self.namespace, "verb": self.verb}
        if subresource:
            attributes["subresource"] = subresource
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }


def live_rights(namespace: str) -> list[Right]:
    """Return the rights for the calls of this package's resources on a cluster in a namespace."""
    return [
        Right(call.group, call.resource, namespace if call.namespace is None else call.namespace, verb)
        for call in LIVE_CALLS
        for verb in call.verbs
    ]


def live_call_findings(kube: Kube, namespace: str) -> Iterator[Diagnosis]:
    """Yield the calls of this package's resources that the caller may not make: the part that a preview checks."""
    yield from _judged(kube, live_rights(namespace), may_wait=set())


def object_findings(kube: Kube, objects: Sequence[Json], namespace: str) -> Iterator[Diagnosis]:
    """Yield the rights that are missing for the program's objects and for the calls of this package's resources.

    The API server maps kinds to resources, and a kind that it does not know is refused. Kinds of other projects'
    operators, which the same `up` may install, are judged with the named objects.
    """
    wanted, awaited = live_rights(namespace), set()
    kinds = {(str(object_["apiVersion"]), str(object_["kind"])): object_ for object_ in objects}
    served: dict[str, Mapping[str, Json]] = {}
    for (version, kind), body in kinds.items():
        if version not in served:
            answer = kube.get(f"/apis/{version}" if "/" in version else f"/api/{version}") or {}
            resources = [resource for resource in answer.get("resources", []) if "/" not in resource["name"]]
            served[version] = {resource["kind"]: resource for resource in resources}
        group = version.rpartition("/")[0]
        if kind not in served[version] and group in OPERATORS:
            continue
        if kind not in served[version]:
            text = f"the API server knows no {kind} of {version}"
            yield refused(CHECK, kind, text, "a server that has it", "Upgrade Kubernetes, or switch the API on.")
            continue
        known = served[version][kind]
        place = str(body["metadata"].get("namespace") or namespace) if known["namespaced"] else ""
        wanted += [Right(group, known["name"], place, verb) for verb in (*_APPLIES, *_AWAITS)]
        awaited |= {Right(group, known["name"], place, verb) for verb in _AWAITS}
    yield from _judged(kube, wanted, may_wait=awaited - {*live_rights(namespace)})


def platform_right_findings(
    kube: Kube, charts: Sequence[PlannedChart], objects: Sequence[Json] = ()
) -> Iterator[Diagnosis]:
    """Yield the rights that are missing for a platform's charts and its own objects; none if it makes neither.

    A user who may not give rights of others can still have all of them, so that alone is a warning.
    """
    own = [
        (*_OF_PLATFORM[body["kind"]], str(body["metadata"].get("namespace", "")))
        for body in objects
        if body["kind"] in _OF_PLATFORM  # others have the platform's label from their user
    ]
    outside = [(_RBAC, "clusterroles", ""), (_RBAC, "clusterrolebindings", "")] if charts else []
    outside += [kind for chart in charts for kind in _OUTSIDE[chart.part]]
    gives = [Right(_RBAC, "clusterroles", "", verb) for verb in _GIVES_RIGHTS] if charts else []
    made = [Right(*kind, verb) for kind in [*outside, *own] for verb in _APPLIES]
    stores = [Right("", "secrets", chart.namespace, verb) for chart in charts for verb in _KEEPS_RELEASES]
    newer = [Right(*kind, verb) for kind in _NEWER for verb in _APPLIES]
    if not (made or stores):
        return
    needs = "these verbs, for the platform's charts and objects (docs/platform.md, Rights)"
    yield from _judged(kube, [*made, *gives, *stores], may_wait={*gives, *newer}, place="platform", needs=needs)


def _judged(
    kube: Kube, wanted: Iterable[Right], may_wait: set[Right], place: str = "kubeconfig", needs: str = ""
) -> Iterator[Diagnosis]:
    every = list(dict.fromkeys(wanted))
    missing = [] if _allowed(kube, Right("*", "*", "", "*")) else _missing(kube, every)
    if not missing:
        yield passed(CHECK, place, f"all {len(every)} rights are there")
    for resource, namespace, group in dict.fromkeys(
        (right.resource, right.namespace, right.group) for right in missing
    ):
        rights = [
            right for right in missing if (right.resource, right.namespace, right.group) == (resource, namespace, group)
        ]
        where = f' in the namespace "{namespace}"' if namespace else " of the whole Kubernetes"
        names = ", ".join(right.verb for right in rights)
        optional = (not needs and resource in _OPTIONAL) or all(right in may_wait for right in rights)
        yield (warned if optional else refused)(
            CHECK,
            place,
            f"{'the' if needs else 'its'} user may not {names} {resource}{where}",
            needs or _purpose(resource),
            f'Add to a {"Role" if namespace else "ClusterRole"} of the user: {{apiGroups: ["{group}"], '
            f"resources: [{resource}], verbs: [{names}]}}.",
        )


def _missing(kube: Kube, wanted: Sequence[Right]) -> list[Right]:
    """Return the missing rights. One review is enough if all verbs on a resource are allowed."""
    missing = []
    for key in dict.fromkeys((right.group, right.resource, right.namespace) for right in wanted):
        if not _allowed(kube, Right(*key, "*")):
            own = [right for right in wanted if (right.group, right.resource, right.namespace) == key]
            missing += [right for right in own if not _allowed(kube, right)]
    return missing


def _allowed(kube: Kube, right: Right) -> bool:
    return bool(kube.create(REVIEWS, right.review()).get("status", {}).get("allowed"))


def _purpose(resource: str) -> str:
    purposes = [call.purpose for call in LIVE_CALLS if call.resource == resource]
    return f"these verbs, to {purposes[0]}" if purposes else "these verbs, to apply the program's objects"
