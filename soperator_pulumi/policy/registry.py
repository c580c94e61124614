"""All policies of this package."""

from collections.abc import Mapping, Sequence

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.policy.accounting_records import ACCOUNTING, ACCOUNTING_DUMPS
from soperator_pulumi.policy.admin_rights import ADMIN_RIGHTS
from soperator_pulumi.policy.charts import DRIVER_UPGRADES, PINNED_CHARTS, PRIVILEGED_NAMESPACES
from soperator_pulumi.policy.cluster_settings import SLURM_SETTINGS
from soperator_pulumi.policy.credentials import MARKED_SECRETS, SECRETS_IN_SECRETS
from soperator_pulumi.policy.definition import AnyPolicy
from soperator_pulumi.policy.exceptions import NAMED_RUNS, POLICY_CONFIGURATION, UNUSED_EXCEPTIONS
from soperator_pulumi.policy.exposure import JOINT_INGRESS, OPEN_EGRESS, PUBLIC_LOGINS, USER_NAMESPACES
from soperator_pulumi.policy.kept_data import KEPT_DATA, KEPT_NAMESPACES, KEPT_VOLUMES
from soperator_pulumi.policy.monitoring import ALERT_RULES, ANONYMOUS_GRAFANA
from soperator_pulumi.policy.naming import LABELS, NAMES
from soperator_pulumi.policy.nodes_in_service import HEALTH_CHECKS, LONG_CHECKS, NODES_IN_SERVICE
from soperator_pulumi.policy.pinned_images import PINNED_IMAGES
from soperator_pulumi.policy.pod_rights import HOST_PATHS, PRIVILEGED_PODS, SERVICE_ACCOUNT_TOKENS
from soperator_pulumi.policy.protection import DISRUPTION_BUDGETS, NETWORK_POLICIES
from soperator_pulumi.policy.public_routes import ENCRYPTED_REST, PUBLIC_ROUTES
from soperator_pulumi.policy.quotas import GPU_QUOTA
from soperator_pulumi.policy.sizes import (
    CANCELLED_JOBS,
    CLUSTER_SCALE_DOWN,
    DRAIN_POLICIES,
    LOGIN_REPLICAS,
    SCALE_DOWN,
    UNDRAINED_NODES,
)
from soperator_pulumi.wording import did_you_mean

POLICIES: tuple[AnyPolicy, ...] = (
    POLICY_CONFIGURATION,
    NAMED_RUNS,
    PRIVILEGED_PODS,
    HOST_PATHS,
    SERVICE_ACCOUNT_TOKENS,
    ADMIN_RIGHTS,
    PINNED_IMAGES,
    PINNED_CHARTS,
    PRIVILEGED_NAMESPACES,
    SECRETS_IN_SECRETS,
    MARKED_SECRETS,
    KEPT_DATA,
    KEPT_NAMESPACES,
    KEPT_VOLUMES,
    ACCOUNTING,
    ACCOUNTING_DUMPS,
    LOGIN_REPLICAS,
    DRAIN_POLICIES,
    CANCELLED_JOBS,
    SLURM_SETTINGS,
    SCALE_DOWN,
    CLUSTER_SCALE_DOWN,
    UNDRAINED_NODES,
    NODES_IN_SERVICE,
    DRIVER_UPGRADES,
    PUBLIC_LOGINS,
    JOINT_INGRESS,
    PUBLIC_ROUTES,
    ENCRYPTED_REST,
    ANONYMOUS_GRAFANA,
    OPEN_EGRESS,
    USER_NAMESPACES,
    NAMES,
    LABELS,
    NETWORK_POLICIES,
    DISRUPTION_BUDGETS,
    GPU_QUOTA,
    ALERT_RULES,
    HEALTH_CHECKS,
    LONG_CHECKS,
    UNUSED_EXCEPTIONS,
)
"""All policies, which the page on policies lists in a table."""


def without(policies: Sequence[AnyPolicy], switched_off: Mapping[str, str]) -> tuple[AnyPolicy, ...]:
    """Return the policies without those that your pack turns off, each with a reason.

    Args:
        policies: The policies.
        switched_off: Reasons by the policies' names.

    Raises:
        SpecError: Some names match no policy, or some reasons are empty; with all of them.
    """
    known = {policy.name for policy in policies}
    problems = []
    for name, reason in switched_off.items():
        if name not in known:
            hint = did_you_mean(name, known, f"There are: {', '.join(sorted(known))}.")
            problems.append(Problem(name, f"there is no such policy. {hint}"))
        elif not reason.strip():
            problems.append(Problem(name, "needs a reason, for the next reader of the pack."))
    if problems:
        raise SpecError("switched_off", problems)
    return tuple(policy for policy in policies if policy.name not in switched_off)
