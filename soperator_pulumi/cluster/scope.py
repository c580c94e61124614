"""Scope of a cluster's children: parent, provider, order, namespace and labels, which no resource can forget."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.lifecycle import NODE_SET_LABEL, OWNER_LABEL, ClusterConnection, KubernetesAccess
from soperator_pulumi.render.layout import MANAGED_BY
from soperator_pulumi.spec import login

PART_OF = "soperator-pulumi"
"""Value of `app.kubernetes.io/part-of` on everything that this package creates."""

_DESCRIBING = {"app.kubernetes.io/name": "slurm", **MANAGED_BY}
"""Labels that only describe an object. Pods have none of them that a release adds, which would recreate the pods."""

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Annotation of objects that Pulumi does not wait for. Comments give the reason for every use."""

NOT_AWAITED = {**SKIP_AWAIT, "pulumi.com/deletionPropagationPolicy": "background"}
"""The same for StatefulSets and Jobs, for whose pods a resource of this package waits. Pulumi then does not wait for
their deletion either: it happens in the background, so that their names are free at once, and their pods end as usual.
"""

FORCED = {"pulumi.com/patchForce": "true"}
"""Annotation of objects whose fields a deployment resets after a change outside Pulumi, such as `kubectl scale`.
Otherwise Kubernetes would refuse the deployment's value."""

SLURM_LABEL = {"soperator-pulumi/slurm": "true"}
"""Label of the pods in which Slurm runs, which find each other by name. Pods that work on trees do not have it."""

DELETE_BEFORE_REPLACE = pulumi.ResourceOptions(delete_before_replace=True)
"""Options of a StatefulSet with a guard: Pulumi deletes the guard first only if it deletes the StatefulSet before
creating its successor. Without it, a transformation that renames the StatefulSet would end pods that are not
drained."""

_DAEMONS = {"accounting": "slurmdbd", "controller": "slurmctld", "login": "sshd", "worker": "slurmd"}
_LABEL_LIMIT = 63


def owner_of(component_name: str) -> str:
    """Return a label value for one component of one stack, different from all others."""
    full = f"{pulumi.get_project()}.{pulumi.get_stack()}.{component_name}"
    if len(full) <= _LABEL_LIMIT and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", full):
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9_.-]", "-", full)[: _LABEL_LIMIT - len(digest) - 1].strip("._-")
    return f"{readable}.{digest}"


def dependencies_of(
    opts: pulumi.ResourceOptions | None, platform: pulumi.Resource | None = None
) -> pulumi.ResourceOptions:
    """Return options with the component's own `depends_on` and its platform, for all its children."""
    given = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
    return pulumi.ResourceOptions.merge(given, pulumi.ResourceOptions(depends_on=[platform] if platform else None))


def urn_of(component: pulumi.ComponentResource) -> pulumi.Output[str]:
    """Return the URN of a component for its own children, without a dependency on all of them."""

    async def urn() -> str:
        return await component.urn.future() or ""

    return pulumi.Output(set(), urn(), component.urn.is_known())


@dataclass(frozen=True)
class Scope:
    """Scope of a component's children.

    Every resource of the package gets its options from `options` and its metadata from `metadata`.
    """

    parent: pulumi.Resource
    cluster: str
    namespace: str
    owner: str
    """Project, stack and component: the value of `OWNER_LABEL`."""
    component: pulumi.Input[str] = ""
    """URN of the SlurmCluster."""
    namespace_uid: pulumi.Input[str] | None = None
    """UID of the namespace, known once it exists; None if the program does not create the namespace."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    access: KubernetesAccess = field(default_factory=KubernetesAccess)
    """Access of the resources that act on the live cluster."""
    provider: pulumi.ProviderResource | None = None
    depends_on: pulumi.ResourceOptions = field(default_factory=pulumi.ResourceOptions)
    """Options with the cluster's own `depends_on`, which Pulumi does not pass on to children."""
    after: tuple[pulumi.Input[pulumi.Resource], ...] = ()

    def within(self, parent: pulumi.Resource) -> "Scope":
        """Return the scope of the children of `parent`."""
        return replace(self, parent=parent)

    def through(self, provider: pulumi.ProviderResource) -> "Scope":
        """Return the scope of children in the Kubernetes of `provider`."""
        return replace(self, provider=provider)

    def following(self, *resources: pulumi.Input[pulumi.Resource]) -> "Scope":
        """Return a scope whose children also wait for `resources`. None in an Output is ignored."""
        return replace(self, after=(*self.after, *resources))

    def behind(self, *resources: pulumi.Input[pulumi.Resource]) -> "Scope":
        """Return a scope whose children wait for `resources` of this scope, and for their dependencies.

        With `following`, Pulumi would record and compare the URNs of those as well, for every child in every run.
        """
        return replace(self, after=resources) if resources else self

    def inside(self, namespace: Namespace) -> "Scope":
        """Return the scope of objects in `namespace`, created after it."""
        uid = namespace.metadata.apply(lambda metadata: metadata.uid or "")  # a mocked deployment has none
        return replace(self.behind(namespace), namespace_uid=uid)

    def options(
        self, extra: pulumi.ResourceOptions | None = None, *, depends_on: Sequence[pulumi.Resource] = ()
    ) -> pulumi.ResourceOptions:
        """Return the options of one child, extended by `extra`."""
        base = pulumi.ResourceOptions(parent=self.parent, provider=self.provider, depends_on=[*self.after, *depends_on])
        return pulumi.ResourceOptions.merge(pulumi.ResourceOptions.merge(self.depends_on, base), extra)

    def connection(self, component: str | None = None, node_set: str | None = None) -> ClusterConnection:
        """Return the handle of the live cluster, with the labels that `selector` returns."""
        selector = self.selector(component, node_set)
        return ClusterConnection(self.access, self.namespace, self.owner, self.component, selector, self.namespace_uid)

    def selector(self, component: str | None = None, node_set: str | None = None) -> dict[str, str]:
        """Return the labels that select the pods of the cluster, of one component, or of one node set."""
        labels = {"app.kubernetes.io/part-of": PART_OF, "app.kubernetes.io/instance": self.cluster}
        if component is not None:
            labels["app.kubernetes.io/component"] = component
        if node_set is not None:
            labels[NODE_SET_LABEL] = node_set
        return labels

    def pod_labels(self, component: str, node_set: str | None = None) -> dict[str, str]:
        """Return all labels of a component's pods."""
        daemon = _DAEMONS.get("login" if login.place(component) else component)
        name = {"app.kubernetes.io/name": daemon or component}
        slurm = SLURM_LABEL if daemon else {}
        return {**self.labels, **self.selector(component, node_set), **name, **slurm}

    def object_labels(
        self, component: str | None = None, node_set: str | None = None, given: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return all labels of an object that is not a pod, with those that the spec has for it alone."""
        labels = self.selector(component, node_set) if component is None else self.pod_labels(component, node_set)
        return {**_DESCRIBING, **(given or {}), **self.labels, **labels, OWNER_LABEL: self.owner}

    def metadata(
        self,
        name: str,
        component: str | None = None,
        node_set: str | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
    ) -> ObjectMetaArgs:
        """Return the metadata of the object `name` in the cluster's namespace."""
        return ObjectMetaArgs(
            name=name,
            namespace=self.namespace,
            labels=self.object_labels(component, node_set),
            # Kubernetes drops an empty map: Pulumi would report a difference each time.
            annotations={**self.annotations, **(annotations or {})} or None,
        )
