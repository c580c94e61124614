"""SlurmCluster: everything that one Slurm cluster needs, in one namespace."""

from collections.abc import Mapping
from typing import Any, Unpack

import pulumi
import pulumi_kubernetes as kubernetes

from soperator_pulumi.cluster.admin import AdminShell
from soperator_pulumi.cluster.args import SlurmClusterArgs
from soperator_pulumi.cluster.cluster_inputs import Parts
from soperator_pulumi.cluster.configuration import create_configuration
from soperator_pulumi.cluster.controller import Controller
from soperator_pulumi.cluster.errors import ClusterArgumentsError, InvalidClusterError
from soperator_pulumi.cluster.jail import Jail
from soperator_pulumi.cluster.leaving import create_drain_gate, create_removed_node_sets
from soperator_pulumi.cluster.login import LoginNodes
from soperator_pulumi.cluster.namespace import create_namespace, create_nodes_service
from soperator_pulumi.cluster.network import create_network_policies
from soperator_pulumi.cluster.node_set import NodeSet
from soperator_pulumi.cluster.program import take_name
from soperator_pulumi.cluster.references import references
from soperator_pulumi.cluster.scope import PART_OF, Scope, owner_of, urn_of, what_it_stands_on
from soperator_pulumi.cluster.secrets import create_keys
from soperator_pulumi.cluster.storage import STATE_CLAIM, create_claim
from soperator_pulumi.errors import SpecError
from soperator_pulumi.lifecycle import (
    OWNER_LABEL,
    ClusterConnection,
    DrainGate,
    KubernetesAccess,
    Prerequisites,
    RemovedNodeSets,
)
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster

WHERE = "soperator:cluster"
"""What messages call the spec."""


class SlurmCluster(pulumi.ComponentResource):
    """A Slurm cluster on Kubernetes.

    Example::

        cluster = SlurmCluster(
            "hpc",
            images=images,
            users=[{"name": "alice", "uid": 2001, "ssh_keys": ["ssh-ed25519 AAAA..."]}],
            node_sets=[{"name": "cpu", "replicas": 4, "cpus": 16, "memory_gib": 64}],
        )
        pulumi.export("login", cluster.login.endpoint)

    It acts on the live cluster with dynamic resources and so is for Python programs only.
    """

    namespace: pulumi.Output[str]
    """Namespace that holds the cluster."""

    jail: Jail
    """The root filesystem of all jobs and sessions."""

    jail_tree: pulumi.Output[str]
    """Id of the tree that new jobs and sessions enter; `jail.active` of the spec takes it to switch back to it."""

    controller: Controller
    """slurmctld."""

    node_sets: Mapping[str, NodeSet]
    """The worker nodes, by the node sets' names."""

    login: LoginNodes
    """sshd, and how it is reached."""

    admin: AdminShell
    """Root in the jail, when it is wanted."""

    removed_node_sets: RemovedNodeSets
    """Frees the nodes of node sets that the spec no longer has of jobs."""

    drain_gate: DrainGate
    """Depends on all else, so it is deleted first: it frees all nodes of jobs, or nothing is deleted."""

    connection: ClusterConnection
    """Handle of the live cluster (access, namespace, UID, owner), for resources that act on it, of other programs too.
    Known once all of the cluster is there; a resource with it is deleted before the cluster is."""

    def __init__(
        self,
        resource_name: str,
        args: SlurmClusterArgs | ClusterSpec | Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **kwargs: Unpack[SlurmClusterArgs],
    ) -> None:
        """Create the cluster.

        Args:
            resource_name: Name of the component, and of the cluster where the description has none.
            args: The cluster's description, as in a stack's configuration.
            opts: Options of the component. `protect`, `providers` and `depends_on` reach the children.
            kwargs: The same keys as `args`; these win.

        Raises:
            InvalidClusterError: the description has problems: all of them in one message. Pulumi prints it alone.
            ClusterArgumentsError: arguments do not go together, or another cluster of the program has its name.
        """
        name = resource_name
        spec, access = _understand(name, args, kwargs)
        take_name(spec.name, name)
        super().__init__("soperator-pulumi:index:SlurmCluster", name, {}, opts)
        scope = self._surroundings(name, spec, access, what_it_stands_on(opts))
        self.prerequisites = self._check_prerequisites(name, scope, spec)
        scope = create_namespace(name, scope.following(self.prerequisites), spec)
        self.removed_node_sets = create_removed_node_sets(name, scope, spec)
        state = create_claim(
            f"{name}-{STATE_CLAIM}", scope, spec.storage.state, STATE_CLAIM, "ReadWriteOnce", keep=spec.storage.keep
        )
        keys = create_keys(name, scope, spec.secrets, self.prerequisites)
        configuration = create_configuration(name, scope.following(self.removed_node_sets), spec)
        self.network_policies = create_network_policies(name, scope, spec, self.prerequisites.api_servers)
        self.nodes_service = create_nodes_service(name, scope)
        protected = scope.following(*self.network_policies)
        self.jail = Jail(
            f"{name}-jail",
            scope=scope,
            spec=spec,
            before_pods=self.network_policies,
            opts=scope.options(),
        )
        parts = Parts(spec, keys, self.jail.claim, state)
        before_pods = [*state.created, *keys.created, *configuration.resources, self.nodes_service]
        self._create_slurm(name, protected.following(*self.jail.claim.created, *before_pods), parts)
        node_sets = [part for node_set in self.node_sets.values() for part in node_set.until_ready]
        pods = [self.jail, self.controller, *node_sets, self.login, self.admin]
        everything = [*self.network_policies, *before_pods, *pods]
        self.drain_gate = create_drain_gate(name, scope, spec, everything)
        self.connection = scope.connection().pinned(self.drain_gate.namespace_uid)
        self.namespace = pulumi.Output.from_input(spec.namespace)
        self.register_outputs({"namespace": self.namespace, "jailTree": self.jail_tree})

    def _create_slurm(self, name: str, ready: Scope, parts: Parts) -> None:
        """Create the pods: slurmctld at once, where jobs and sessions run after the jail has a tree for them."""
        self.controller = Controller(f"{name}-controller", scope=ready, parts=parts, opts=ready.options())
        filled = ready.following(self.jail.populated)
        self.node_sets = self._create_node_sets(name, filled.following(self.controller.stateful_set), parts)
        self.login = LoginNodes(f"{name}-login", scope=filled, parts=parts, opts=filled.options())
        self.jail.activate(filled.following(self.controller.ready, self.login.ready))
        self.jail_tree = self.jail.tree
        active = filled.following(self.jail.active)
        self.admin = AdminShell(f"{name}-admin", scope=active, parts=parts, opts=active.options())

    def _surroundings(
        self, name: str, spec: ClusterSpec, access: KubernetesAccess, stands_on: pulumi.ResourceOptions
    ) -> Scope:
        """Return what all children share; a kubeconfig given to the component gets a provider of its own."""
        provider = self.get_provider("kubernetes:core/v1:Pod")
        if provider is not None and not access:
            raise ClusterArgumentsError(
                f"SlurmCluster {name!r}: an explicit Kubernetes provider was given without kubeconfig or context. "
                "The cluster talks to Slurm itself and cannot read the provider's credentials, so it might act on "
                "another Kubernetes. Give the component the same kubeconfig (and context), or no provider at all."
            )
        scope = Scope(
            parent=self,
            cluster=spec.name,
            namespace=spec.namespace,
            owner=spec.owner or owner_of(name),
            component=urn_of(self),
            labels=spec.labels,
            annotations=spec.annotations,
            access=access,
            provider=provider,
            stands_on=stands_on,
        )
        if provider is not None or not access:
            return scope
        own = kubernetes.Provider(
            f"{name}-kubernetes",
            kubeconfig=access.secret_kubeconfig(),
            context=access.context,
            # Or another address or CA of the same Kubernetes would have everything made anew.
            cluster_identifier=scope.owner,
            enable_secret_mutable=True,  # a changed Secret is changed in place
            opts=scope.options(),
        )
        return scope.through(own)

    def _check_prerequisites(self, name: str, scope: Scope, spec: ClusterSpec) -> Prerequisites:
        return Prerequisites(
            f"{name}-prerequisites",
            cluster=scope.connection(),
            where=WHERE,
            create_namespace=spec.create_namespace,
            owner_label=OWNER_LABEL,
            part_of={"app.kubernetes.io/part-of": PART_OF},
            references=references(spec),
            api_servers=spec.network.api_servers,
            opts=scope.options(),
        )

    def _create_node_sets(self, name: str, scope: Scope, parts: Parts) -> dict[str, NodeSet]:
        return {
            node_set.name: NodeSet(
                f"{name}-{node_set.name}", scope=scope, parts=parts, node_set=node_set, opts=scope.options()
            )
            for node_set in parts.spec.node_sets
        }


def _understand(name: str, args: object, kwargs: Mapping[str, Any]) -> tuple[ClusterSpec, KubernetesAccess]:
    """Return the checked spec, and the Kubernetes cluster that it goes to."""
    described: dict[str, Any] = {"name": name, **args} if isinstance(args, Mapping) else {"name": name}
    given = {**described, **kwargs}
    access = KubernetesAccess(kubeconfig=given.pop("kubeconfig", None), context=given.pop("context", None))
    if isinstance(args, ClusterSpec):
        if besides := sorted(given.keys() - {"name"}):
            raise ClusterArgumentsError(
                f"SlurmCluster {name!r}: got a ClusterSpec and also {', '.join(besides)}. Put all into the ClusterSpec."
            )
        return args, access
    try:
        return parse_cluster(given if args is None or isinstance(args, Mapping) else args, where=WHERE), access
    except SpecError as error:
        raise InvalidClusterError(error.where, error.problems) from None
