"""Parts of a cluster that need another object in the same namespace."""

from collections.abc import Iterable, Iterator

from soperator_pulumi.policy.value_tree import look
from soperator_pulumi.policy.view import ResourceView


def stateful_sets(resources: Iterable[ResourceView], part: str) -> Iterator[ResourceView]:
    """Yield the StatefulSets that belong to a part of a cluster, such as `Controller`."""
    return (resource for resource in resources if resource.kind == "StatefulSet" and resource.part == part)


def running_cron_jobs(resources: Iterable[ResourceView], part: str) -> Iterator[ResourceView]:
    """Yield the CronJobs that belong to a part of a cluster, without suspended ones."""
    for resource in resources:
        if resource.kind == "CronJob" and resource.part == part and look(resource.props, "spec", "suspend") is not True:
            yield resource


def without_companion(parts: Iterable[ResourceView], companions: Iterable[ResourceView]) -> Iterator[ResourceView]:
    """Yield the parts whose namespace has none of the companions."""
    accompanied = {str(companion.namespace) for companion in companions}
    return (part for part in parts if str(part.namespace) not in accompanied)
