"""SlurmCluster: everything that one Slurm cluster needs, in one namespace."""

from collections.abc import Mapping
from typing import Any, Unpack

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.core.v1 import Namespace, Service
from pulumi_kubernetes.networking.v1 import NetworkPolicy

from soperator_pulumi.cluster.accounting import Accounting, create_accounting
from soperator_pulumi.cluster.admin import AdminShell
from soperator_pulumi.cluster.arguments import (
    SlurmClusterArgs,
    platform_of,
    reserve_name,
    understand,
    where_of,
)
from soperator_pulumi.cluster.config_maps import ConfigMaps, create_config_maps, create_users
from soperator_pulumi.cluster.container_images import ContainerImages, create_container_images
from soperator_pulumi.cluster.controller import Controller
from soperator_pulumi.cluster.drain_gates import create_drain_gate, create_removed_node_sets
from soperator_pulumi.cluster.jail import Jail, create_active_tree
from soperator_pulumi.cluster.login import LoginNodes
from soperator_pulumi.cluster.long_checks import HealthChecks, create_health_checks
from soperator_pulumi.cluster.metrics_exporter import MetricsExporter, create_metrics
from soperator_pulumi.cluster.network import create_network_policies, create_nodes_service
from soperator_pulumi.cluster.node_set import NodeSet
from soperator_pulumi.cluster.own_provider import create_provider
from soperator_pulumi.cluster.pod_template import Parts
from soperator_pulumi.cluster.references import creates_namespace, references
from soperator_pulumi.cluster.rest_api import RestApi, create_rest
from soperator_pulumi.cluster.rules_and_dashboards import RulesAndDashboards, create_rules_and_dashboards
from soperator_pulumi.cluster.scope import PART_OF, Scope, dependencies_of, owner_of, urn_of
from soperator_pulumi.cluster.secrets import Keys, create_keys
from soperator_pulumi.cluster.slurm_releases import create_slurm_version
from soperator_pulumi.cluster.storage import STATE_CLAIM, Claim, create_claim, create_namespace
from soperator_pulumi.lifecycle import (
    OWNER_LABEL,
    ActiveTree,
    ClusterConnection,
    DrainGate,
    KubernetesAccess,
    Prerequisites,
    RemovedNodeSets,
    SlurmVersion,
)
from soperator_pulumi.render.communication import uses_ipv6
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.login import object_name


class SlurmCluster(pulumi.ComponentResource):
    """A Slurm cluster on Kubernetes.

    Example::

        import pulumi

        from soperator_pulumi import SlurmCluster

        cluster = SlurmCluster(
            "hpc",
            images=pulumi.Config("soperator").require_object("images"),
            users=[{"name": "alice", "uid": 2001}],
            node_sets=[{"name": "cpu", "replicas": 4, "cpus": 16, "memory_gib": 64}],
        )
        pulumi.export("login", cluster.login.endpoint)

    Every child is an attribute: `cluster.node_sets["cpu"].stateful_set`, `cluster.login.service`. Programs in other
    languages have the component from the plugin in `components/`.
    """

    namespace_name: pulumi.Output[str]
    """Name of the namespace, known once it exists: give it to your own objects in the namespace."""

    jail_tree: pulumi.Output[str]
    """Id of the tree that new jobs and sessions enter. `jail.active` of the spec takes it to switch back."""

    kubernetes_provider: kubernetes.Provider | None
    """Provider of all children, made from `kubeconfig` and `context`; None without them, or if you pass a provider."""

    prerequisites: Prerequisites
    """Check of the live Kubernetes before anything is applied."""

    namespace: Namespace | None
    """The namespace; None if it existed before (`create_namespace: false`). `namespace_name` is always set."""

    slurm_version: SlurmVersion
    """Check of a Slurm upgrade, with its steps in a preview, and a database dump before it."""

    removed_node_sets: RemovedNodeSets
    """Drain of node sets that left the spec."""

    state_claim: Claim
    """Claim with slurmctld's state, ReadWriteOnce."""

    keys: Keys
    """The munge key and the ssh host key."""

    config_maps: ConfigMaps
    """Files of Slurm, of its users and of sshd."""

    network_policies: Mapping[str, NetworkPolicy]
    """NetworkPolicies, by their names in Kubernetes."""

    nodes_service: Service
    """Headless Service by which Slurm's pods find each other."""

    jail: Jail
    """The root filesystem of all jobs and sessions."""

    accounting: Accounting | None
    """slurmdbd and its database; None with `accounting: none`."""

    controller: Controller
    """slurmctld."""

    node_sets: Mapping[str, NodeSet]
    """The worker nodes, by the node sets' names."""

    login: LoginNodes
    """sshd, with its endpoint."""

    login_pools: Mapping[str, LoginNodes]
    """Further login nodes, by their names in `login.pools`."""

    rest: RestApi | None
    """slurmrestd; None if `rest` is not set."""

    health_checks: HealthChecks | None
    """CronJobs of the long checks; None if `health.long_checks` is empty."""

    container_images: ContainerImages | None
    """Shared container images; None if `containers` is not set."""

    metrics: MetricsExporter | None
    """The exporter of Slurm's metrics; None if `metrics` is not set."""

    rules_and_dashboards: RulesAndDashboards | None
    """Alert rules and dashboards; None without `metrics.alerts` and `metrics.dashboards`."""

    active_tree: ActiveTree
    """Switch to the tree that new jobs and sessions enter."""

    admin: AdminShell
    """Root shell in the jail, for the time of a session."""

    drain_gate: DrainGate
    """Deleted first, as it depends on everything else: it drains all nodes, or nothing is deleted."""

    connection: ClusterConnection
    """Handle of the live cluster (access, namespace, UID, owner) for resources that act on it, also in other programs.
    It is known once the whole cluster exists; a resource that uses it is deleted before the cluster is."""

    def __init__(
        self,
        resource_name: str,
        args: SlurmClusterArgs | ClusterSpec | Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **kwargs: Unpack[SlurmClusterArgs],
    ) -> None:
        """Create the cluster.

        Args:
            resource_name: Name of the component, and of the cluster if the description has no name.
            args: The cluster's description, as in a stack's configuration.
            opts: Options of the component. `protect`, `providers` and `depends_on` reach the children.
            kwargs: The same keys as `args`; these win.

        Raises:
            InvalidClusterError: The description or the arguments have problems, or another cluster of the program has
                the name. All problems are in one message, which Pulumi prints alone.
        """
        name = resource_name
        spec, access = understand(name, args, kwargs)
        reserve_name(spec.name, name)
        super().__init__("soperator-pulumi:index:SlurmCluster", name, {}, opts)
        scope = self._create_scope(name, spec, access, dependencies_of(opts, platform_of(args, kwargs)))
        self.prerequisites = self._create_prerequisites(name, scope, spec, creates_namespace(opts))
        scope = self._create_namespace(name, scope.following(self.prerequisites), spec)
        self.slurm_version = create_slurm_version(name, scope, spec)
        self.removed_node_sets = create_removed_node_sets(name, scope.behind(self.slurm_version), spec)
        self.state_claim = create_claim(
            f"{name}-{STATE_CLAIM}", scope, spec.storage.state, STATE_CLAIM, "ReadWriteOnce", keep=spec.storage.keep
        )
        self.keys = create_keys(name, scope, spec.secrets, self.prerequisites, spec.rest)
        self.network_policies = create_network_policies(name, scope, spec, self.prerequisites.api_servers)
        self.nodes_service = create_nodes_service(name, scope)
        self.rules_and_dashboards = create_rules_and_dashboards(name, scope, spec.metrics)
        policies = tuple(self.network_policies.values())
        self.jail = Jail(f"{name}-jail", scope=scope, spec=spec, before_pods=policies, opts=scope.options())
        parts = Parts(spec, self.keys, self.jail.claim, self.state_claim)
        users = create_users(name, scope.behind(self.removed_node_sets), spec)
        before_pods = [*policies, *self.state_claim.created, self.keys.in_use, self.nodes_service, users]
        with_pods = scope.behind(*self.jail.claim.created, *before_pods)
        self.accounting = create_accounting(name, with_pods, parts)
        # slurmctld takes its cluster's id from slurmdbd when it reads of accounting for the first time.
        recording = [self.accounting.associations] if self.accounting is not None else []
        after = [self.removed_node_sets, *recording]
        self.config_maps = create_config_maps(name, scope.behind(*after), spec, users)
        before_pods += [*recording, *self.config_maps.resources]
        self._create_slurm(name, with_pods.behind(*recording).following(*self.config_maps.resources), parts)
        node_sets = [part for node_set in self.node_sets.values() for part in node_set.until_ready]
        pods = [
            self.jail,
            self.controller,
            *node_sets,
            *self._logins,
            self.active_tree,
            self.admin,
            *self._next_to_jobs,
        ]
        self.drain_gate = create_drain_gate(name, scope, spec, [*before_pods, *pods])
        self.connection = scope.connection().pinned(self.drain_gate.namespace_uid)
        self.register_outputs(self.outputs)

    @property
    def login_pool_endpoints(self) -> dict[str, pulumi.Output[str]]:
        """`host:port` for ssh of every login pool, by its name."""
        return {pool: nodes.endpoint for pool, nodes in self.login_pools.items()}

    @property
    def outputs(self) -> dict[str, pulumi.Output[Any]]:
        """Outputs of the component for programs in other languages, under their names there."""
        return {
            "namespaceName": self.namespace_name,
            "jailTree": self.jail_tree,
            "loginEndpoint": self.login.endpoint,
            "loginPoolEndpoints": pulumi.Output.from_input(self.login_pool_endpoints),
            "loginHostPublicKey": self.login.host_public_key,
            "loginHostKeyFingerprint": self.login.host_key_fingerprint,
            "jailClaimName": pulumi.Output.from_input(self.jail.claim.name),
            "stateClaimName": pulumi.Output.from_input(self.state_claim.name),
        }

    def _create_scope(
        self, name: str, spec: ClusterSpec, access: KubernetesAccess, depends_on: pulumi.ResourceOptions
    ) -> Scope:
        """Return the scope of all children, with a separate provider if the component has its own kubeconfig."""
        scope = Scope(
            parent=self,
            cluster=spec.name,
            namespace=spec.namespace,
            owner=spec.owner or owner_of(name),
            component=urn_of(self),
            labels=spec.labels,
            annotations=spec.annotations,
            access=access,
            provider=self.get_provider("kubernetes:core/v1:Pod"),
            depends_on=depends_on,
        )
        self.kubernetes_provider = create_provider(name, scope)
        return scope if self.kubernetes_provider is None else scope.through(self.kubernetes_provider)

    def _create_prerequisites(
        self, name: str, scope: Scope, spec: ClusterSpec, namespace_created: pulumi.Output[bool] | None
    ) -> Prerequisites:
        return Prerequisites(
            f"{name}-prerequisites",
            cluster=scope.connection(),
            where=where_of(name),
            create_namespace=spec.create_namespace,
            namespace_created_by_program=namespace_created,
            keep_namespace=spec.storage.keep,
            owner_label=OWNER_LABEL,
            part_of={"app.kubernetes.io/part-of": PART_OF},
            references=references(spec),
            api_servers=spec.network.api_servers,
            ipv6=uses_ipv6(spec),
            opts=scope.options(),
        )

    def _create_namespace(self, name: str, scope: Scope, spec: ClusterSpec) -> Scope:
        """Create the namespace, unless it exists, and return the scope of its objects."""
        self.namespace = create_namespace(name, scope, spec)
        if self.namespace is None:
            self.namespace_name = pulumi.Output.from_input(spec.namespace)
            return scope
        self.namespace_name = self.namespace.metadata.apply(lambda metadata: str(metadata.name))
        return scope.inside(self.namespace)

    def _create_slurm(self, name: str, scope: Scope, parts: Parts) -> None:
        """Create the pods: slurmctld at once, and those for jobs and sessions after the jail has a tree."""
        self.controller = Controller(f"{name}-controller", scope=scope, parts=parts, opts=scope.options())
        controlled = scope.behind(self.controller.ready, self.jail.populated)
        self.rest = create_rest(name, controlled, parts)
        self.metrics = create_metrics(name, controlled, parts)
        after_controller = scope.behind(
            self.controller.stateful_set, self.jail.populated, *self._in_upgrades(self.controller.ready)
        )
        self.node_sets = self._create_node_sets(name, after_controller, parts)
        all_ready = [node_set.ready for node_set in self.node_sets.values()]
        clients = scope.following(self.jail.populated, *self._in_upgrades(self.controller.ready, *all_ready))
        self.login = LoginNodes(f"{name}-login", scope=clients, parts=parts, opts=clients.options())
        self.login_pools = {
            pool: LoginNodes(
                f"{name}-{object_name(pool)}", scope=clients, parts=parts, pool=pool, opts=clients.options()
            )
            for pool in parts.spec.login.pools
        }
        ready = scope.behind(self.controller.ready, *(nodes.ready for nodes in self._logins))
        self.active_tree = create_active_tree(name, ready, parts.spec, self.jail.claim)
        self.jail_tree = self.active_tree.tree
        active = scope.behind(self.active_tree)
        self.health_checks = create_health_checks(name, active, parts)
        self.container_images = create_container_images(name, active, parts)
        self.admin = AdminShell(f"{name}-admin", scope=active, parts=parts, opts=active.options())

    @property
    def _logins(self) -> list[LoginNodes]:
        return [self.login, *self.login_pools.values()]

    @property
    def _next_to_jobs(self) -> list[pulumi.Resource]:
        """Parts with pods that no job needs, without their waits, so that a refused destroy keeps them as well."""
        daemons = [daemon.stateful_set for daemon in (self.rest, self.metrics) if daemon is not None]
        jobs = [self.container_images.job] if self.container_images is not None else []
        return [*daemons, *jobs, *filter(None, [self.health_checks])]

    def _in_upgrades(self, *resources: pulumi.Resource) -> list[pulumi.Output[pulumi.Resource]]:
        """Return resources to wait for during upgrades of Slurm only. A new cluster's pods start together."""

        def waited_for(resource: pulumi.Resource) -> pulumi.Output[Any]:
            return self.slurm_version.upgrading.apply(lambda upgrading: resource if upgrading else None)

        return [waited_for(resource) for resource in resources]

    def _create_node_sets(self, name: str, scope: Scope, parts: Parts) -> dict[str, NodeSet]:
        return {
            node_set.name: NodeSet(
                f"{name}-{node_set.name}", scope=scope, parts=parts, node_set=node_set, opts=scope.options()
            )
            for node_set in parts.spec.node_sets
        }
