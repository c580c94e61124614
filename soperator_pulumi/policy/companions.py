"""Parts of a cluster that need another object of the same namespace beside them."""

from collections.abc import Iterable, Iterator

from soperator_pulumi.policy.value_tree import look
from soperator_pulumi.policy.view import ResourceView


def stateful_sets(resources: Iterable[ResourceView], part: str) -> Iterator[ResourceView]:
    """Yield the StatefulSets of a part of clusters, such as `Controller`."""
    return (each for each in resources if each.kind == "StatefulSet" and each.part == part)


def running_cron_jobs(resources: Iterable[ResourceView], part: str) -> Iterator[ResourceView]:
    """Yield the CronJobs of a part of clusters that are not suspended."""
    for each in resources:
        if each.kind == "CronJob" and each.part == part and look(each.props, "spec", "suspend") is not True:
            yield each


def alone(parts: Iterable[ResourceView], companions: Iterable[ResourceView]) -> Iterator[ResourceView]:
    """Yield the parts in whose namespaces none of the companions is."""
    accompanied = {str(each.namespace) for each in companions}
    return (each for each in parts if str(each.namespace) not in accompanied)
