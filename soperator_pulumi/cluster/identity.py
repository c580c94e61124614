"""Cloud identities of pods: their ServiceAccount, and its token for jobs.

The token is signed for one audience, which is not the Kubernetes API. A pod gets none for the API.
"""

from pulumi_kubernetes.core.v1 import (
    ProjectedVolumeSourceArgs,
    ServiceAccount,
    ServiceAccountTokenProjectionArgs,
    VolumeArgs,
    VolumeProjectionArgs,
)

from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.spec.node_set import JOB_TOKEN_DIR, JOB_TOKEN_FILE, NodeSetSpec
from soperator_pulumi.spec.user_pods import UserPods


def account_name(pods: UserPods, default: str) -> str | None:
    """Return the name of the pods' ServiceAccount; None for the namespace's own."""
    account = pods.service_account
    return None if account is None else account.name or default


def create_service_account(
    name: str, scope: Scope, component: str, pods: UserPods, node_set: str | None = None
) -> list[ServiceAccount]:
    """Create the pods' ServiceAccount, without rights, and return it; an empty list if the spec creates none.

    Args:
        name: Prefix of the resource's name.
        scope: Scope of the component that has the pods.
        component: The component's label.
        pods: The spec of the pods.
        node_set: The node set of workers.
    """
    account = pods.service_account
    if account is None or not account.create:
        return []
    own = account.name or node_set or component
    return [
        ServiceAccount(
            f"{name}-account",
            metadata=scope.metadata(own, component, node_set, account.annotations),
            automount_service_account_token=False,
            opts=scope.options(),
        )
    ]


def job_token(node_set: NodeSetSpec) -> list[Mount]:
    """Return the mount of the token for jobs, readable by all users; none unless the spec asks for it.

    The kubelet replaces the file before the token expires.
    """
    token = node_set.job_token
    if token is None:
        return []
    projection = ServiceAccountTokenProjectionArgs(
        audience=token.audience, expiration_seconds=token.expiration_seconds, path=JOB_TOKEN_FILE
    )
    source = ProjectedVolumeSourceArgs(
        sources=[VolumeProjectionArgs(service_account_token=projection)], default_mode=0o444
    )
    return [Mount("job-token", VolumeArgs(name="job-token", projected=source), JOB_TOKEN_DIR, read_only=True)]
