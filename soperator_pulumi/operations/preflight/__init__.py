"""Checks of a Kubernetes cluster before anything is applied to it, all at once.

A preview and an `up` read (`problems_before_up`). An `up` also asks for its rights, before its first change
(`missing_rights`), as the credentials of a preview may permit no changes. `Preflight` of `preflight_run` makes all
checks, and starts pods.
"""

from collections.abc import Iterable, Iterator

from soperator_pulumi.errors import Problem
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.preflight.access_rights import live_call_findings
from soperator_pulumi.operations.preflight.api_server import api_servers, closed_api_servers, release_findings
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, Severity
from soperator_pulumi.operations.preflight.named_objects import Reference, ssh_host_public_key
from soperator_pulumi.operations.preflight.prerequisites import PrerequisitesInputs, problems


def problems_before_up(
    kube: Kube, wanted: PrerequisitesInputs, before: PrerequisitesInputs | None = None
) -> Iterator[Problem]:
    """Yield the problems that a preview reports: of the Kubernetes release, and of named objects.

    Machines are left out, as an autoscaler may add them: the wait for nodes reports the scheduler's own reason.

    Args:
        kube: Kubernetes of the cluster to be.
        wanted: Place of the cluster to be.
        before: Place recorded in the stack's state; None when the cluster is new to it.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    yield from _refusals(release_findings(kube))
    yield from problems(kube, wanted, before)


def missing_rights(kube: Kube, namespace: str) -> Iterator[Problem]:
    """Yield the rights that the caller lacks for the calls of this package's resources on a cluster in the namespace.

    Raises:
        KubernetesError: the cluster does not answer.
    """
    yield from _refusals(live_call_findings(kube, namespace))


def _refusals(found: Iterable[Diagnosis]) -> Iterator[Problem]:
    return (diagnosis for diagnosis in found if diagnosis.severity is Severity.REFUSED)


__all__ = [
    "PrerequisitesInputs",
    "Reference",
    "api_servers",
    "closed_api_servers",
    "missing_rights",
    "problems",
    "problems_before_up",
    "ssh_host_public_key",
]
