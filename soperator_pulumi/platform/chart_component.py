"""Base class of the platform's components: a namespace, the release of a chart, and their order; and tolerations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.helm.v3 import Release
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.errors import Problem
from soperator_pulumi.lifecycle import InstalledParts, KubernetesAccess
from soperator_pulumi.platform.chart_values import merged_values
from soperator_pulumi.platform.charts import CHART_OF_PART, Chart
from soperator_pulumi.platform.description import (
    WHERE,
    InvalidPlatformError,
    parse_part,
    release_source,
    require_charts,
)
from soperator_pulumi.platform.requirements import namespace_requirements, requirements
from soperator_pulumi.render.layout import MANAGED_BY
from soperator_pulumi.spec.platform.chart_part import ChartPart
from soperator_pulumi.spec.platform.platform_spec import PARTS, PlatformSpec
from soperator_pulumi.spec.scheduling import Toleration

REASON = "soperator-pulumi/privileged-because"
"""Annotation of a namespace with the reason for the level `privileged`, which a policy requires."""

GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""Usual taint of machines with GPUs, which NVIDIA's charts tolerate."""

PART_OF = {"app.kubernetes.io/part-of": "soperator-platform"}
"""Label of the platform's own objects."""


def object_labels(name: str) -> dict[str, str]:
    """Return the labels of an object that the platform makes itself, for the part of this name."""
    return {"app.kubernetes.io/name": name, **PART_OF, **MANAGED_BY}


@dataclass(frozen=True)
class PartScope:
    """Options of a part's children: parent, provider, and the resources that come first."""

    parent: pulumi.Resource
    provider: pulumi.ProviderResource | None = None
    access: KubernetesAccess = field(default_factory=KubernetesAccess)
    depends_on: pulumi.ResourceOptions = field(default_factory=pulumi.ResourceOptions)
    """Options with the component's own `depends_on`, which Pulumi does not pass on to children."""
    after: tuple[pulumi.Resource, ...] = ()
    keep: bool = False
    """Keep the children in Kubernetes when they leave the stack."""

    def within(self, parent: pulumi.Resource) -> "PartScope":
        """Return the scope of the children of `parent`."""
        return replace(self, parent=parent)

    def following(self, *resources: pulumi.Resource) -> "PartScope":
        """Return the scope of children that also wait for `resources`."""
        return replace(self, after=(*self.after, *resources))

    def options(self, extra: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
        """Return the options of one child; `extra` adds its own."""
        base = pulumi.ResourceOptions(
            parent=self.parent,
            provider=self.provider,
            depends_on=[*self.after],
            retain_on_delete=True if self.keep else None,
        )
        return pulumi.ResourceOptions.merge(pulumi.ResourceOptions.merge(self.depends_on, base), extra)


class ChartComponent(pulumi.ComponentResource):
    """A part of a platform. With `exists: true` it installs nothing, and checks the existing installation."""

    PART: ClassVar[str]
    """Name of the part in the spec of a platform."""

    namespace: Namespace | None
    """The namespace; None if it existed before."""

    release: Release | None
    """Helm's release; None if the chart was installed outside this platform."""

    installed: InstalledParts | None
    """Check of an existing installation; None if the component installs the part, or the platform does the check."""

    def __init__(
        self,
        resource_name: str,
        args: ChartPart | Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: PartScope | None = None,
    ) -> None:
        """Create the part.

        Args:
            resource_name: Name of the component.
            args: Description of the part, as in `soperator:platform` of a stack.
            opts: Options of the component. `protect`, `providers` and `depends_on` reach the children.
            scope: Scope of the platform that the part belongs to; None for a part without a platform.

        Raises:
            InvalidPlatformError: The description has problems; the message lists all of them.
        """
        type_ = f"soperator-pulumi:index:{type(self).__name__}"
        whole = parse_part(self.PART, args, f"{type(self).__name__} {resource_name!r}")
        require_charts(whole, f"{type(self).__name__} {resource_name!r}", self.PART)
        super().__init__(type_, resource_name, {}, opts)
        around = scope or PartScope(
            self, depends_on=pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        )
        self._name, self._chart = resource_name, CHART_OF_PART[self.PART]
        self.namespace = self.release = self.installed = None
        spec = whole.part(self.PART)
        assert spec is not None  # noqa: S101 - the part that was given
        if spec.exists:
            self.installed = check_installed(resource_name, around.within(self), whole)
        else:
            self._install(spec, replace(around.within(self), keep=spec.keep))
        self.register_outputs({})

    def _install(self, spec: Any, scope: PartScope) -> None:  # noqa: ANN401 - the spec of the part
        """Create the children of a part that does not exist yet."""
        raise NotImplementedError

    def _namespaced(
        self, spec: ChartPart, scope: PartScope, privileged_because: str = "", *, keep: bool = False
    ) -> PartScope:
        """Create the namespace, unless it exists, and return the scope of its contents.

        Args:
            spec: Spec of the part.
            scope: Scope of the namespace.
            privileged_because: Reason for privileged pods; empty for the level `baseline`.
            keep: Keep the namespace, and the data in it, during a destroy.
        """
        if not spec.create_namespace or self._namespace_of(spec) == "kube-system":
            return scope
        level = "privileged" if privileged_because else "baseline"
        self.namespace = Namespace(
            f"{self._name}-namespace",
            metadata=ObjectMetaArgs(
                name=self._namespace_of(spec),
                labels={
                    **object_labels(self._chart.name),
                    **{f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")},
                },
                annotations={REASON: privileged_because} if privileged_because else None,
            ),
            opts=scope.options(pulumi.ResourceOptions(retain_on_delete=keep or scope.keep)),
        )
        return scope.following(self.namespace)

    def _namespace_of(self, spec: ChartPart) -> str:
        return spec.namespace or self._chart.namespace

    def _release(
        self,
        spec: ChartPart,
        scope: PartScope,
        values: Mapping[str, Any],
        *,
        definitions: Chart | None = None,
        definitions_version: str | None = None,
        extra: pulumi.ResourceOptions | None = None,
    ) -> Release:
        """Create the release of the part's chart, or of the chart that holds its definitions.

        Args:
            spec: Spec of the part.
            scope: Scope of the release.
            values: Default values. Those of the spec are merged over them, unless `definitions` is given.
            definitions: Chart that holds the definitions; None for the part's own chart.
            definitions_version: Version of that chart; None for the tested version.
            extra: Further options.
        """
        chart = definitions or self._chart
        version = (definitions_version if definitions else spec.version) or chart.version
        of_user = () if definitions else (spec.values, spec.unchecked_values)
        return Release(
            f"{self._name}-{chart.name}" if definitions else self._name,
            name=chart.release,
            namespace=self._namespace_of(spec),
            values=reduce(merged_values, of_user, values),
            timeout=int(spec.timeout.total_seconds()),
            cleanup_on_fail=True,  # otherwise Helm leaves new objects of a failed upgrade behind
            max_history=10,  # a revision with large definitions is a Secret of up to a MiB
            opts=scope.options(pulumi.ResourceOptions.merge(_LEAVES_FIRST, extra)),
            **release_source(chart, spec.source, version),
        )


_LEAVES_FIRST = pulumi.ResourceOptions(delete_before_replace=True)
"""Options of a release: a second one of this name in another namespace would clash with cluster-wide objects."""


def check_installed(component: str, scope: PartScope, spec: PlatformSpec) -> InstalledParts | None:
    """Create the check of all parts that exist outside the platform; None for a platform without parts.

    The check also records the installed parts, so that exists: true does not remove one of them unnoticed.

    Raises:
        InvalidPlatformError: The check would read another Kubernetes than the provider uses.
    """
    foreign = scope.parent.get_provider("kubernetes:core/v1:Pod") is not None and not scope.access
    needs = [*requirements(spec), *(() if foreign else namespace_requirements(spec))]
    asked: Sequence[Mapping[str, Any]] = [need.model_dump() for need in needs]
    own = {key: part.keep for key in PARTS if (part := spec.part(key)) is not None and not part.exists}
    if not asked and not own:
        return None
    if asked and foreign:
        by_itself = "Declare the part in a Platform with the same kubeconfig (and context), or remove its provider."
        whole = "Give Platform the same kubeconfig (and context), or remove its provider."
        text = (
            "missing, while an explicit Kubernetes provider is given, whose credentials the check of existing parts "
            "cannot "
            "read: it might read another Kubernetes. "
            f"{by_itself if isinstance(scope.parent, ChartComponent) else whole}"
        )
        raise InvalidPlatformError(f"{type(scope.parent).__name__} {component!r}", [Problem("kubeconfig", text)])
    return InstalledParts(
        f"{component}-installed", access=scope.access, where=WHERE, requirements=asked, own=own, opts=scope.options()
    )


def written_tolerations(tolerations: Sequence[Toleration]) -> list[dict[str, Any]]:
    """Return tolerations under the keys that Kubernetes uses."""
    return [
        {
            "operator": toleration.operator.value,
            **({} if toleration.key is None else {"key": toleration.key}),
            **({} if toleration.value is None else {"value": toleration.value}),
            **({} if toleration.effect is None else {"effect": toleration.effect.value}),
            **({} if toleration.toleration_seconds is None else {"tolerationSeconds": toleration.toleration_seconds}),
        }
        for toleration in tolerations
    ]
