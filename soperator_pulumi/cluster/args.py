"""What SlurmCluster takes, for editors and type checkers."""

import pulumi

from soperator_pulumi.spec.args import ClusterArgs


class SlurmClusterArgs(ClusterArgs, total=False):
    """The cluster's description, and the Kubernetes that it goes to. The default `name` is the component's."""

    kubeconfig: pulumi.Input[str] | None
    """Content or path of a kubeconfig file: which Kubernetes to use. Default: the ambient KUBECONFIG."""
    context: pulumi.Input[str] | None
    """Context in the kubeconfig. Default: its current one."""
