"""The Kubernetes provider of a cluster's children: the program's, or one made of the component's kubeconfig."""

import pulumi_kubernetes as kubernetes

from soperator_pulumi.cluster.arguments import refusal
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.errors import Problem


def create_provider(name: str, scope: Scope) -> kubernetes.Provider | None:
    """Create the provider of the children, or return None if the program's own provider serves them.

    Raises:
        InvalidClusterError: The program gives an explicit provider, and the component no kubeconfig.
    """
    if scope.provider is not None and not scope.access:
        raise refusal(
            name,
            Problem(
                "kubeconfig",
                "missing, and required with an explicit Kubernetes provider. The cluster talks to Slurm itself and "
                "cannot read the provider's credentials, so it might act on another Kubernetes. Give the component the "
                "same kubeconfig (and context), or no provider at all.",
            ),
        )
    if scope.provider is not None or not scope.access:
        return None
    return kubernetes.Provider(
        f"{name}-kubernetes",
        kubeconfig=scope.access.secret_kubeconfig(),
        context=scope.access.context,
        # Without it, another address or CA of the same Kubernetes would recreate everything.
        cluster_identifier=scope.owner,
        enable_secret_mutable=True,  # a changed Secret is changed in place
        opts=scope.options(),
    )
