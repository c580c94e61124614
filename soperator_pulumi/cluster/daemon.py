"""Daemons of a cluster: the StatefulSet, the wait until its pods answer, and the refusal of evictions."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs
from pulumi_kubernetes.core.v1 import PodTemplateSpecArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpecArgs

from soperator_pulumi.cluster.pod_template import NODES_SERVICE
from soperator_pulumi.cluster.scope import NOT_AWAITED, Scope
from soperator_pulumi.lifecycle import PodsReady
from soperator_pulumi.spec.cluster import ClusterSpec


class Daemon(NamedTuple):
    """Resources of a daemon."""

    stateful_set: StatefulSet
    ready: PodsReady
    """Waits until the daemon answers in all pods, and reports the reason if it does not."""


def create_daemon(
    name: str,
    scope: Scope,
    spec: ClusterSpec,
    component: str,
    template: PodTemplateSpecArgs,
    *,
    replicas: int = 1,
    parallel: bool = False,
    service_name: str = NODES_SERVICE,
    annotations: Mapping[str, str] = MappingProxyType({}),
    depends_on: Sequence[pulumi.Resource] = (),
) -> Daemon:
    """Create the StatefulSet of a daemon, named after its component, and the resource that waits for its pods.

    Args:
        name: Name of the StatefulSet's resource, and prefix of the other's.
        scope: Of the component that the daemon belongs to.
        spec: Of the cluster, with the time to wait.
        component: Label of the pods.
        template: Of the pods.
        replicas: Number of pods.
        parallel: Starts all pods at the same time.
        service_name: Service that gives the pods their names.
        annotations: Further annotations of the StatefulSet.
        depends_on: Resources that must exist before the pods.
    """
    stateful_set = StatefulSet(
        name,
        # Pulumi does not wait, as the daemons of a cluster wait for each other. `ready` does.
        metadata=scope.metadata(component, component, annotations={**NOT_AWAITED, **annotations}),
        spec=StatefulSetSpecArgs(
            service_name=service_name,
            replicas=replicas,
            pod_management_policy="Parallel" if parallel else None,
            selector=LabelSelectorArgs(match_labels=scope.selector(component)),
            template=template,
        ),
        opts=scope.options(depends_on=depends_on),
    )
    ready = PodsReady(
        f"{name}-ready",
        cluster=scope.connection(component),
        stateful_set=component,
        timeout_seconds=spec.ready_timeout_seconds,
        opts=scope.options(depends_on=[stateful_set]),
    )
    return Daemon(stateful_set, ready)


def create_disruption_budget(
    name: str, scope: Scope, component: str, node_set: str | None = None, *, max_unavailable: int = 0
) -> PodDisruptionBudget:
    """Create the PodDisruptionBudget of these pods. By default it refuses every eviction, as evictions ignore jobs.

    `kubectl drain` of a machine then waits until its Slurm nodes are drained and their pods deleted. Deleting the
    controller's pod costs no job.
    """
    return PodDisruptionBudget(
        f"{name}-disruption",
        metadata=scope.metadata(node_set or component, component, node_set),
        spec=PodDisruptionBudgetSpecArgs(
            max_unavailable=max_unavailable,
            selector=LabelSelectorArgs(match_labels=scope.selector(component, node_set)),
        ),
        opts=scope.options(),
    )
