"""Base of the components of a platform: a namespace, the release of a chart, and their order."""

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
from soperator_pulumi.spec.platform.chart_part import ChartPart
from soperator_pulumi.spec.platform.whole_platform import PARTS, PlatformSpec

REASON = "soperator-pulumi/privileged-because"
"""Annotation of a namespace: the reason of the level `privileged`, which a policy asks for."""

PART_OF = {"app.kubernetes.io/part-of": "soperator-platform"}
"""Label of the platform's own objects."""


@dataclass(frozen=True)
class PartScope:
    """Options of a part's children: parent, provider, and the resources before them."""

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
    """A part of a platform. `exists: true` installs nothing, and checks what is there."""

    PART: ClassVar[str]
    """Name of the part in the spec of a platform."""

    namespace: Namespace | None
    """The namespace. None where it existed before."""

    release: Release | None
    """Helm's release. None where somebody else installed the chart."""

    installed: InstalledParts | None
    """Check of an installation of somebody else's. None where the part is our own, or the platform checks it."""

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
            args: Description of the part, as in a stack's `soperator:platform`.
            opts: Options of the component. `protect`, `providers` and `depends_on` reach the children.
            scope: Scope of the platform that the part belongs to; None for a part by itself.

        Raises:
            InvalidPlatformError: The description has problems. All of them are in one message.
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
        """Create the children of a part that is our own."""
        raise NotImplementedError

    def _namespaced(
        self, spec: ChartPart, scope: PartScope, privileged_because: str = "", *, keep: bool = False
    ) -> PartScope:
        """Create the namespace, unless it exists, and return the scope of what comes into it.

        Args:
            spec: Spec of the part.
            scope: Scope of the namespace.
            privileged_because: Reason of privileged pods; empty for the level `baseline`.
            keep: Keep the namespace, with the data in it, in a destroy.
        """
        if not spec.create_namespace or self._namespace_of(spec) == "kube-system":
            return scope
        level = "privileged" if privileged_because else "baseline"
        self.namespace = Namespace(
            f"{self._name}-namespace",
            metadata=ObjectMetaArgs(
                name=self._namespace_of(spec),
                labels={
                    **PART_OF,
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
        """Create the release of the part's chart, or of the chart with its definitions.

        Args:
            spec: Spec of the part.
            scope: Scope of the release.
            values: Our values. Those of the spec are merged over them, unless the release is that of `definitions`.
            definitions: Chart of the definitions; None for the part's own chart.
            definitions_version: Version of that chart; None for the tested one.
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
            cleanup_on_fail=True,  # Helm else leaves new objects of a failed upgrade behind
            max_history=10,  # a release with large definitions is a Secret of up to a MiB each
            opts=scope.options(pulumi.ResourceOptions.merge(_LEAVES_FIRST, extra)),
            **release_source(chart, spec.source, version),
        )


_LEAVES_FIRST = pulumi.ResourceOptions(delete_before_replace=True)
"""Options of a release: in another namespace, a second one of its name would meet the first's cluster-wide objects."""


def check_installed(component: str, scope: PartScope, spec: PlatformSpec) -> InstalledParts | None:
    """Create the check of all parts of a platform that somebody else installed; None for a platform without parts.

    It also records the parts of our own, so that exists: true does not remove one of them unnoticed.

    Raises:
        InvalidPlatformError: The check would read another Kubernetes than the provider's.
    """
    foreign = scope.parent.get_provider("kubernetes:core/v1:Pod") is not None and not scope.access
    needs = [*requirements(spec), *(() if foreign else namespace_requirements(spec))]
    asked: Sequence[Mapping[str, Any]] = [each.model_dump() for each in needs]
    own = {key: part.keep for key in PARTS if (part := spec.part(key)) is not None and not part.exists}
    if not asked and not own:
        return None
    if asked and foreign:
        by_itself = "Declare the part in a Platform with the same kubeconfig (and context), or give it no provider."
        whole = "Give Platform the same kubeconfig (and context), or no provider at all."
        text = (
            "missing beside an explicit Kubernetes provider, whose credentials the check of existing parts cannot "
            "read: it might read another Kubernetes. "
            f"{by_itself if isinstance(scope.parent, ChartComponent) else whole}"
        )
        raise InvalidPlatformError(f"{type(scope.parent).__name__} {component!r}", [Problem("kubeconfig", text)])
    return InstalledParts(
        f"{component}-installed", access=scope.access, where=WHERE, requirements=asked, own=own, opts=scope.options()
    )
