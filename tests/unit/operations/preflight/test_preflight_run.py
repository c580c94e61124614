"""A preflight whose user may not read everything: what it could not check, it says."""

from typing import Any, cast

import pytest

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.preflight.admitting_machines import MACHINES
from soperator_pulumi.operations.preflight.diagnosis import Severity
from soperator_pulumi.operations.preflight.planned import PlannedChart, PlannedCluster, PlannedPlatform
from soperator_pulumi.operations.preflight.preflight_run import Preflight, platform_findings
from soperator_pulumi.operations.preflight.prerequisites import PrerequisitesInputs
from tests.unit.operations.preflight.test_machine_fit import a_machine, pods


class OnlyMachines:
    """Kubernetes for a user who may read machines, and nothing else."""

    key = "kubernetes"

    def find(self, path: str, *_: Any) -> list[Any]:
        if path != MACHINES:
            raise KubernetesError(f"{path}: forbidden.")
        return [a_machine()]

    def get(self, path: str) -> Any:
        if path.startswith("/api/v1/namespaces/"):
            return None
        raise KubernetesError(f"{path}: forbidden.")

    def __getattr__(self, name: str) -> Any:
        raise KubernetesError(f"{name}: forbidden.")


def test_daemon_sets_that_cannot_be_read_are_a_warning_and_the_machines_are_judged_without_them() -> None:
    prerequisites = PrerequisitesInputs(
        namespace="hpc", create_namespace=True, owner="hpc", owner_label="owner", part_of={}, references=()
    )
    template = {**pods().template, "metadata": {"labels": {"app.kubernetes.io/component": "worker"}}}
    worker = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "cpu"},
        "spec": {"replicas": 1, "template": template},
    }
    planned = PlannedCluster("hpc", prerequisites, [worker])
    found = Preflight(cast("Kube", OnlyMachines()), planned, lambda _: None, probes=()).findings()
    of_machines = [item for item in found if item.check == "machines"]
    assert [(machine.path, machine.severity) for machine in of_machines] == [
        ("DaemonSets", Severity.WARNED),
        ("node_sets[0]", Severity.PASSED),
    ]
    assert of_machines[0].found == "not checked: /apis/apps/v1/daemonsets: forbidden"


class NoMachines:
    """Kubernetes without the namespace, for a user who may not read machines."""

    key = "kubernetes"

    def find(self, path: str, *_: Any) -> list[Any]:
        if path == MACHINES:
            raise KubernetesError(f"{path}: forbidden.")
        return []

    def get(self, _path: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        raise KubernetesError(f"{name}: forbidden.")


def test_machines_that_cannot_be_read_hide_no_namespace_that_is_missing() -> None:
    prerequisites = PrerequisitesInputs(
        namespace="hpc", create_namespace=False, owner="hpc", owner_label="owner", part_of={}, references=()
    )
    planned = PlannedCluster("hpc", prerequisites, [], platform=PlannedPlatform(critical_namespaces=("gpu-operator",)))

    found = Preflight(cast("Kube", NoMachines()), planned, lambda _: None, probes=()).findings()

    severities = [(item.path, item.severity) for item in found if item.check == "prerequisites"]
    assert ("GPU Operator", Severity.WARNED) in severities
    assert Severity.REFUSED in [severity for _, severity in severities]


@pytest.mark.parametrize(
    ("charts", "accepted", "severities"),
    [
        ((), (), [Severity.PASSED]),
        ((PlannedChart("CertManager", "cert-manager"),), (), [Severity.WARNED]),
    ],
)
def test_a_platform_alone_has_findings_even_if_nothing_can_be_read(
    charts: tuple[PlannedChart, ...], accepted: tuple[str, ...], severities: list[Severity]
) -> None:
    shown: list[str] = []
    found = platform_findings(cast("Kube", NoMachines()), PlannedPlatform(charts=charts), shown.append, accepted)
    assert [finding.severity for finding in found] == severities
    assert shown


def test_a_platform_in_a_kubernetes_that_does_not_answer_is_not_checked() -> None:
    with pytest.raises(KubernetesError):
        platform_findings(cast("Kube", SilentKubernetes()), PlannedPlatform(), lambda _: None)


class SilentKubernetes:
    """Kubernetes that answers nothing."""

    def __getattr__(self, name: str) -> Any:
        raise KubernetesError(f"{name}: no answer.")
