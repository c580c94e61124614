"""PodDisruptionBudgets: Kubernetes takes no pod away by itself while a job may depend on it."""

from pulumi_kubernetes.meta.v1 import LabelSelectorArgs
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpecArgs

from soperator_pulumi.cluster.scope import Scope


def never_evicted(name: str, scope: Scope, component: str, node_set: str | None = None) -> PodDisruptionBudget:
    """Refuse every eviction of these pods.

    An eviction knows nothing of jobs, so `kubectl drain` of a machine stops until somebody has drained its
    Slurm nodes and deleted the pods, or deleted the controller's pod, which costs no job.
    """
    return PodDisruptionBudget(
        f"{name}-disruption",
        metadata=scope.metadata(node_set or component, component, node_set),
        spec=PodDisruptionBudgetSpecArgs(
            max_unavailable=0,
            selector=LabelSelectorArgs(match_labels=scope.selector(component, node_set)),
        ),
        opts=scope.options(),
    )
