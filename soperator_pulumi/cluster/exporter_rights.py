"""Rights of the exporter in Kubernetes: to write events in the cluster's namespace, and conditions of machines."""

from dataclasses import dataclass

from pulumi_kubernetes.core.v1 import (
    ConfigMapProjectionArgs,
    DownwardAPIProjectionArgs,
    DownwardAPIVolumeFileArgs,
    KeyToPathArgs,
    ObjectFieldSelectorArgs,
    ProjectedVolumeSourceArgs,
    ServiceAccount,
    ServiceAccountTokenProjectionArgs,
    VolumeArgs,
    VolumeProjectionArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRuleArgs,
    Role,
    RoleBinding,
    RoleRefArgs,
    SubjectArgs,
)

from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.render import layout
from soperator_pulumi.spec.metrics import MetricsSpec

EXPORTER_ACCOUNT = "metrics-exporter"
"""Name of the ServiceAccount, Role and RoleBinding."""

_API = "rbac.authorization.k8s.io"
_TOKEN_SECONDS = 3600


@dataclass(frozen=True)
class ExporterRights:
    """A ServiceAccount and its rights."""

    account: ServiceAccount
    role: Role
    """Rights in the cluster's namespace."""
    binding: RoleBinding
    cluster_role: ClusterRole | None
    """Rights on machines; None without `metrics.node_conditions`."""
    cluster_binding: ClusterRoleBinding | None

    @property
    def bindings(self) -> list[RoleBinding | ClusterRoleBinding]:
        """Return the bindings, which the pod depends on."""
        return [item for item in (self.binding, self.cluster_binding) if item is not None]


def create_exporter_rights(name: str, scope: Scope, component: str, metrics: MetricsSpec) -> ExporterRights:
    """Create the ServiceAccount of the exporter's pod, with its rights.

    Args:
        name: Prefix of the resources' names.
        scope: Scope of the component that has the pod.
        component: The component's label.
        metrics: Settings of the exporter.
    """
    metadata = scope.metadata(EXPORTER_ACCOUNT, component)
    account = ServiceAccount(
        f"{name}-account", metadata=metadata, automount_service_account_token=False, opts=scope.options()
    )
    own_rules = [
        *([PolicyRuleArgs(api_groups=[""], resources=["events"], verbs=["create"])] if metrics.events else []),
        # to find the machine of a pod
        *([PolicyRuleArgs(api_groups=[""], resources=["pods"], verbs=["get"])] if metrics.node_conditions else []),
    ]
    role = Role(f"{name}-rights", metadata=metadata, rules=own_rules, opts=scope.options())
    subjects = [SubjectArgs(kind="ServiceAccount", name=EXPORTER_ACCOUNT, namespace=scope.namespace)]
    binding = RoleBinding(
        f"{name}-rights",
        metadata=metadata,
        role_ref=RoleRefArgs(api_group=_API, kind="Role", name=EXPORTER_ACCOUNT),
        subjects=subjects,
        opts=scope.options(depends_on=[account, role]),
    )
    if not metrics.node_conditions:
        return ExporterRights(account, role, binding, None, None)
    # Objects of the whole Kubernetes: the namespace, which holds one cluster, makes the name their own.
    machines = ObjectMetaArgs(
        name=f"{scope.namespace}-{EXPORTER_ACCOUNT}",
        labels=scope.object_labels(component),
        annotations=scope.annotations or None,
    )
    rules = [
        PolicyRuleArgs(api_groups=[""], resources=["nodes"], verbs=["list"]),  # to find conditions that were left
        PolicyRuleArgs(api_groups=[""], resources=["nodes/status"], verbs=["patch"]),
    ]
    cluster_role = ClusterRole(f"{name}-machines", metadata=machines, rules=rules, opts=scope.options())
    cluster_binding = ClusterRoleBinding(
        f"{name}-machines",
        metadata=machines,
        role_ref=RoleRefArgs(api_group=_API, kind="ClusterRole", name=f"{scope.namespace}-{EXPORTER_ACCOUNT}"),
        subjects=subjects,
        opts=scope.options(depends_on=[account, cluster_role]),
    )
    return ExporterRights(account, role, binding, cluster_role, cluster_binding)


def account_files() -> Mount:
    """Return the mount of token, authority and namespace for one container. Other containers have no token."""
    sources = [
        VolumeProjectionArgs(
            service_account_token=ServiceAccountTokenProjectionArgs(path="token", expiration_seconds=_TOKEN_SECONDS)
        ),
        VolumeProjectionArgs(
            config_map=ConfigMapProjectionArgs(
                name="kube-root-ca.crt", items=[KeyToPathArgs(key="ca.crt", path="ca.crt")]
            )
        ),
        VolumeProjectionArgs(
            downward_api=DownwardAPIProjectionArgs(
                items=[
                    DownwardAPIVolumeFileArgs(
                        path="namespace",
                        field_ref=ObjectFieldSelectorArgs(api_version="v1", field_path="metadata.namespace"),
                    )
                ]
            )
        ),
    ]
    source = VolumeArgs(name="account", projected=ProjectedVolumeSourceArgs(sources=sources, default_mode=0o444))
    return Mount("account", source, layout.ACCOUNT_DIR, read_only=True)
