"""A user's processes stay below the limit of a pod, judged by kubelets as the API answers them."""

from typing import Any, cast

import pytest

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.preflight.planned import PlannedPods
from soperator_pulumi.operations.preflight.process_limits import limit_findings
from tests.unit.operations.preflight.test_machine_fit import a_machine


class Kubelets:
    """Kubelets by machine: the limit of a pod, None for an answer without one, or an error."""

    def __init__(self, **limits: int | KubernetesError | None) -> None:
        self._limits = limits
        self.asked: list[str] = []

    def get(self, path: str) -> Any:
        name = path.removeprefix("/api/v1/nodes/").removesuffix("/proxy/configz")
        self.asked.append(name)
        limit = self._limits[name]
        if isinstance(limit, KubernetesError):
            raise limit
        return {"kubeletconfig": {} if limit is None else {"podPidsLimit": limit}}


def workers(processes: int = 4096) -> PlannedPods:
    containers = [{"name": "slurmd", "image": "worker", "args": ["conf=/etc/slurm", f"processes={processes}", "--"]}]
    return PlannedPods("node_sets[0]", "worker", 2, {"metadata": {}, "spec": {"containers": containers}})


def found(kubelets: Kubelets, pods: PlannedPods, *machines: Any) -> list[str]:
    return [
        f"{limit_finding.found}. {limit_finding.cure}"
        for limit_finding in limit_findings(cast("Kube", kubelets), [pods], machines)
    ]


def of_image(name: str, image: str) -> Any:
    machine = a_machine(name)
    machine["status"]["nodeInfo"]["osImage"] = image
    return machine


def test_a_user_who_can_have_all_processes_of_a_pod_is_warned_of_with_the_number_that_fits() -> None:
    (text,) = found(Kubelets(n1=4096), workers(), a_machine())
    assert text == (
        "a user may have 4096 processes, and a pod 4096: one user can take the node from others. "
        "Set node_sets[0].max_processes to 3584, or raise the kubelet's podPidsLimit."
    )
    assert found(Kubelets(n1=4096), workers(3584), a_machine()) == []


def test_a_pod_that_is_too_small_for_any_user_is_cured_by_the_kubelet_alone() -> None:
    (text,) = found(Kubelets(n1=512), workers(), a_machine())
    assert text.endswith("one user can take the node from others. Raise the kubelet's podPidsLimit.")


def test_a_login_node_is_judged_by_the_limit_of_its_sessions() -> None:
    command = ["/usr/bin/tini", "--", "/usr/bin/prlimit", "--nproc=2048", "--"]
    spec = {"containers": [{"name": "sshd", "image": "login", "command": command}]}
    (text,) = found(Kubelets(n1=2048), PlannedPods("login", "login", 1, {"metadata": {}, "spec": spec}), a_machine())
    assert "Set login.max_processes to 1536" in text


@pytest.mark.parametrize("limit", [None, -1, 0, KubernetesError("forbidden")])
def test_a_pod_without_a_limit_or_of_an_unknown_one_passes(limit: int | KubernetesError | None) -> None:
    assert found(Kubelets(n1=limit), workers(), a_machine()) == []


def test_one_machine_of_each_kind_answers_and_the_lowest_limit_counts() -> None:
    kubelets = Kubelets(n1=100_000, n2=100_000, n3=4000)
    machines = [of_image("n1", "one"), of_image("n2", "one"), of_image("n3", "other")]
    (text,) = found(kubelets, workers(), *machines)
    assert "a pod 4000" in text
    assert len(kubelets.asked) == 2


def test_pods_without_users_ask_nothing() -> None:
    kubelets = Kubelets()
    spec = {"containers": [{"name": "slurmctld", "image": "controller"}]}
    assert (
        found(kubelets, PlannedPods("controller", "controller", 1, {"metadata": {}, "spec": spec}), a_machine()) == []
    )
    assert kubelets.asked == []
