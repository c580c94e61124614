"""What all children of a cluster share: no resource can forget its parent, its labels or its order."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.meta.v1.outputs import ObjectMeta

from soperator_pulumi.lifecycle import NODE_SET_LABEL, OWNER_LABEL, ClusterConnection, KubernetesAccess

PART_OF = "soperator-pulumi"
"""Value of `app.kubernetes.io/part-of` on everything that this package creates."""

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Annotation of objects that Pulumi is not to wait for; the reason stands where it is used."""

NOT_AWAITED = {**SKIP_AWAIT, "pulumi.com/deletionPropagationPolicy": "background"}
"""The same for StatefulSets and Jobs, whose pods a resource of ours waits for. Pulumi does not wait for their deletion
then, and what is made anew under the same name, or by a run right after it, must find none that is still going. Pods go
as they would."""

FORCED = {"pulumi.com/patchForce": "true"}
"""Annotation of objects of which a deployment takes back what somebody has set beside Pulumi, as `kubectl scale` does:
otherwise Kubernetes refuses the deployment's value."""

SLURM_LABEL = {"soperator-pulumi/slurm": "true"}
"""Label of the pods in which Slurm runs, which find each other by name: not of those that work on the jail's trees."""

OLD_ONE_FIRST = pulumi.ResourceOptions(delete_before_replace=True)
"""Of a StatefulSet with a guard: only what is deleted before its successor is made has Pulumi delete its guard first. A
transformation that gives it another name would have both there at once, and the pods of the old one go undrained."""

_DAEMONS = {"controller": "slurmctld", "login": "sshd", "worker": "slurmd"}
_LABEL_LIMIT = 63


def owner_of(component_name: str) -> str:
    """Return a label value that is the same for one component of one stack, and different for all others."""
    full = f"{pulumi.get_project()}.{pulumi.get_stack()}.{component_name}"
    if len(full) <= _LABEL_LIMIT and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", full):
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9_.-]", "-", full)[: _LABEL_LIMIT - len(digest) - 1].strip("._-")
    return f"{readable}.{digest}"


def what_it_stands_on(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """Return options with what the component itself was told to depend on, for each of its children."""
    return pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)


def urn_of(component: pulumi.ComponentResource) -> pulumi.Output[str]:
    """Return the URN of a component for its own children: as a plain value, or each would wait for all of them."""

    async def urn() -> str:
        return await component.urn.future() or ""

    return pulumi.Output(set(), urn(), component.urn.is_known())


def _uid(metadata: ObjectMeta) -> str:
    return metadata.uid or ""  # a mocked deployment gives none


@dataclass(frozen=True)
class Scope:
    """The surroundings of a component's children: parent, provider, order, namespace and labels.

    Every resource of the package gets its options from `options` and its metadata from `metadata`.
    """

    parent: pulumi.Resource
    cluster: str
    namespace: str
    owner: str
    """Stack and component: the value of `OWNER_LABEL`."""
    component: pulumi.Input[str] = ""
    """URN of the component that the cluster is."""
    namespace_uid: pulumi.Input[str] | None = None
    """What Kubernetes gave the namespace, where the program makes it: known once it is there."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    access: KubernetesAccess = field(default_factory=KubernetesAccess)
    """Access of the resources that act on the live cluster."""
    provider: pulumi.ProviderResource | None = None
    stands_on: pulumi.ResourceOptions = field(default_factory=pulumi.ResourceOptions)
    """With `depends_on` of what the cluster stands on, which Pulumi itself does not hand on to children."""
    after: tuple[pulumi.Resource, ...] = ()

    def within(self, parent: pulumi.Resource) -> "Scope":
        """Return the same surroundings for the children of `parent`."""
        return replace(self, parent=parent)

    def through(self, provider: pulumi.ProviderResource) -> "Scope":
        """Return the same surroundings for children that go to the cluster of `provider`."""
        return replace(self, provider=provider)

    def following(self, *resources: pulumi.Resource) -> "Scope":
        """Return the same surroundings for children that wait for `resources` as well."""
        return replace(self, after=(*self.after, *resources))

    def inside(self, namespace: Namespace) -> "Scope":
        """Return the same surroundings for what stands in `namespace`, once it is there."""
        return replace(self.following(namespace), namespace_uid=namespace.metadata.apply(_uid))

    def options(
        self, extra: pulumi.ResourceOptions | None = None, *, depends_on: Sequence[pulumi.Resource] = ()
    ) -> pulumi.ResourceOptions:
        """Return the options of one child; `extra` adds what is special to it."""
        base = pulumi.ResourceOptions(parent=self.parent, provider=self.provider, depends_on=[*self.after, *depends_on])
        return pulumi.ResourceOptions.merge(pulumi.ResourceOptions.merge(self.stands_on, base), extra)

    def connection(self, component: str | None = None, node_set: str | None = None) -> ClusterConnection:
        """Return the handle of the live cluster, with the labels that `selector` returns."""
        selector = self.selector(component, node_set)
        return ClusterConnection(self.access, self.namespace, self.owner, self.component, selector, self.namespace_uid)

    def selector(self, component: str | None = None, node_set: str | None = None) -> dict[str, str]:
        """Return the labels that find the pods of the cluster, of one component, or of one node set."""
        labels = {"app.kubernetes.io/part-of": PART_OF, "app.kubernetes.io/instance": self.cluster}
        if component is not None:
            labels["app.kubernetes.io/component"] = component
        if node_set is not None:
            labels[NODE_SET_LABEL] = node_set
        return labels

    def pod_labels(self, component: str, node_set: str | None = None) -> dict[str, str]:
        """Return all labels of the pods of one component."""
        name = {"app.kubernetes.io/name": _DAEMONS.get(component, component)}
        slurm = SLURM_LABEL if component in _DAEMONS else {}
        return {**self.labels, **self.selector(component, node_set), **name, **slurm}

    def object_labels(self, component: str | None = None, node_set: str | None = None) -> dict[str, str]:
        """Return all labels of an object that is not a pod."""
        labels = self.selector(component, node_set) if component is None else self.pod_labels(component, node_set)
        return {**self.labels, **labels, OWNER_LABEL: self.owner}

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
            # Kubernetes forgets an empty map, so Pulumi would find it missing each time.
            annotations={**self.annotations, **(annotations or {})} or None,
        )
