"""Platform: everything below Slurm, in one component."""

from collections.abc import Mapping
from typing import Any, Unpack

import pulumi
import pulumi_kubernetes as kubernetes

from soperator_pulumi.errors import Problem
from soperator_pulumi.lifecycle import AccessArgs, InstalledParts, KubernetesAccess
from soperator_pulumi.platform.cert_manager import CertManager
from soperator_pulumi.platform.chart_component import ChartComponent, PartScope, check_installed
from soperator_pulumi.platform.cilium import Cilium
from soperator_pulumi.platform.description import InvalidPlatformError, parse_platform, provided_by, require_charts
from soperator_pulumi.platform.gpu_operator import GpuOperator
from soperator_pulumi.platform.kube_prometheus_stack import KubePrometheusStack, PrometheusDefinitions
from soperator_pulumi.platform.mariadb_operator import MariadbOperator
from soperator_pulumi.platform.network_operator import NetworkOperator
from soperator_pulumi.platform.shared_storage import SharedStorage
from soperator_pulumi.spec.args import PlatformArgs
from soperator_pulumi.spec.platform.kube_prometheus_stack import KubePrometheusStackSpec
from soperator_pulumi.spec.platform.platform_spec import PlatformSpec
from soperator_pulumi.spec.platform.provided import ProvidedSpec

COMPONENTS: Mapping[str, type[ChartComponent]] = {
    component.PART: component
    for component in (CertManager, Cilium, KubePrometheusStack, MariadbOperator, GpuOperator, NetworkOperator)
}
"""Components of the parts."""

BEFORE: Mapping[str, tuple[str, ...]] = {
    "cilium": (),
    "cert_manager": ("cilium",),
    "kube_prometheus_stack": ("cilium", "cert_manager"),
    "mariadb_operator": ("cilium", "cert_manager", "kube_prometheus_stack"),
    "gpu_operator": ("cilium", "kube_prometheus_stack"),
    "network_operator": ("cilium", "gpu_operator"),
}
"""Parts that must come first, by part: the network before all pods, the monitoring before everything that it scrapes,
and the GPU Operator's Node Feature Discovery before the rules of the Network Operator."""


class SlurmPlatformArgs(PlatformArgs, AccessArgs, total=False):
    """Description of the platform, and access to its Kubernetes."""


class Platform(pulumi.ComponentResource):
    """The platform of one Kubernetes cluster: charts of other projects, with settings that keep jobs running.

    Example::

        import pulumi

        from soperator_pulumi import Platform, SlurmCluster

        platform = Platform("platform", {"kubernetes": "eks", "kube_prometheus_stack": {}, "gpu_operator": {}})
        cluster = SlurmCluster(
            "hpc",
            platform=platform,
            images=pulumi.Config("soperator").require_object("images"),
            node_sets=[{"name": "cpu", "replicas": 4, "cpus": 16, "memory_gib": 64}],
        )

    A part with `exists: true` is checked and not changed. A cluster is created after its platform, and destroyed
    before it.
    """

    kubernetes_provider: kubernetes.Provider | None
    """Provider of all children, made from `kubeconfig` and `context`; None without them, or if you pass a provider."""

    installed: InstalledParts | None
    """Check of the existing parts, and record of the installed ones; None for a platform without parts."""

    definitions: PrometheusDefinitions | None
    """Definitions of Prometheus' operator; None if the platform does not install kube-prometheus-stack."""

    parts: Mapping[str, ChartComponent]
    """Parts that the platform installs, by their keys in the spec: `platform.parts["gpu_operator"].release`."""

    shared_storage: SharedStorage | None
    """Shared volume for jails; None if clusters name their own."""

    access: KubernetesAccess
    """Access to the Kubernetes, as given by the program."""

    provided: ProvidedSpec
    """Names of resources and classes that a SlurmCluster takes as defaults."""

    def __init__(
        self,
        resource_name: str,
        args: SlurmPlatformArgs | PlatformSpec | Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **kwargs: Unpack[SlurmPlatformArgs],
    ) -> None:
        """Create the platform.

        Args:
            resource_name: Name of the component.
            args: The platform's description, as in a stack's configuration.
            opts: Options of the component. `protect`, `providers` and `depends_on` reach the children.
            kwargs: The same keys as in `args`, with priority over them.

        Raises:
            InvalidPlatformError: The description has problems; the message lists all of them.
        """
        name = resource_name
        spec, access = _understood(name, args, kwargs)
        require_charts(spec, f"Platform {name!r}")
        super().__init__("soperator-pulumi:index:Platform", name, {}, opts)
        self.access = access
        scope = self._create_scope(name, access, opts)
        self.installed = check_installed(name, scope, spec)
        self.parts = self._create_parts(
            name, scope if self.installed is None else scope.following(self.installed), spec
        )
        self.shared_storage = (
            None
            if spec.shared_storage is None
            else SharedStorage(f"{name}-shared-storage", spec.shared_storage, scope.options(), scope=scope)
        )
        self.provided = provided_by(spec)
        self.register_outputs(self.outputs)

    @property
    def outputs(self) -> dict[str, Any]:
        """Outputs for programs in other languages, under their names there."""
        return {
            "gpuResource": self.provided.gpu_resource,
            "rdmaResources": [*self.provided.rdma_resources],
            "runtimeClass": self.provided.runtime_class,
            "storageClass": self.provided.storage_class,
            "staticVolume": self.provided.static_volume,
            "existingClaim": self.provided.existing_claim,
            "sizeGib": self.provided.size_gib,
            "kubePrometheusStack": self.provided.kube_prometheus_stack,
            "mariadbOperator": self.provided.mariadb_operator,
        }

    def _create_scope(self, name: str, access: KubernetesAccess, opts: pulumi.ResourceOptions | None) -> PartScope:
        """Return the scope of all children; a kubeconfig given to the component gets its own provider."""
        self.kubernetes_provider = None
        provider = self.get_provider("kubernetes:core/v1:Pod")
        depends_on = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        scope = PartScope(self, provider, access, depends_on)
        if provider is not None or not access:
            return scope
        self.kubernetes_provider = kubernetes.Provider(
            f"{name}-kubernetes",
            kubeconfig=access.secret_kubeconfig(),
            context=access.context,
            # Otherwise, a changed address or CA of the same Kubernetes would install everything again.
            cluster_identifier=f"{pulumi.get_project()}.{pulumi.get_stack()}.{name}",
            enable_secret_mutable=True,  # a changed Secret is updated in place
            opts=scope.options(),
        )
        return PartScope(self, self.kubernetes_provider, access, depends_on)

    def _create_parts(self, name: str, scope: PartScope, spec: PlatformSpec) -> dict[str, ChartComponent]:
        """Create the parts that do not exist yet, in the order of installation."""
        created: dict[str, ChartComponent] = {}
        ours = {key: part for key in BEFORE if (part := spec.part(key)) is not None and not part.exists}
        self.definitions, first = None, scope
        stack = spec.kube_prometheus_stack
        if stack is not None and not stack.exists:
            # Cilium needs the definitions of monitors before there is a network for Prometheus' pods.
            self.definitions = PrometheusDefinitions(
                f"{name}-prometheus-definitions", stack, scope.options(), scope=scope
            )
            first = scope.following(self.definitions)
        for key, part in ours.items():
            after = first.following(*(created[earlier] for earlier in BEFORE[key] if earlier in created))
            resource_name = f"{name}-{key.replace('_', '-')}"
            if isinstance(part, KubePrometheusStackSpec):
                created[key] = KubePrometheusStack(
                    resource_name, part, after.options(), scope=after, definitions=self.definitions
                )
            else:
                created[key] = COMPONENTS[key](resource_name, part, after.options(), scope=after)
        return created


def _understood(component: str, args: object, kwargs: Mapping[str, Any]) -> tuple[PlatformSpec, KubernetesAccess]:
    """Return the checked spec and the access to its Kubernetes."""
    described = dict(args) if isinstance(args, Mapping) else {}
    given = {**described, **kwargs}
    access = KubernetesAccess(kubeconfig=given.pop("kubeconfig", None), context=given.pop("context", None))
    where = f"Platform {component!r}"
    if isinstance(args, PlatformSpec):
        if given:
            problems = [Problem(key, "given together with a PlatformSpec. Move it there.") for key in sorted(given)]
            raise InvalidPlatformError(where, problems)
        return parse_platform(args, where), access
    return parse_platform(given if args is None or isinstance(args, Mapping) else args, where), access
