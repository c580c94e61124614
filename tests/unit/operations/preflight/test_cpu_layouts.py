"""Layouts that node sets declare, judged by the CPUs of machines as the API answers them."""

from typing import Any

import pytest

from soperator_pulumi.operations.preflight.cpu_layouts import layout_findings
from soperator_pulumi.operations.preflight.diagnosis import Severity
from soperator_pulumi.operations.preflight.planned import PlannedPods
from soperator_pulumi.render.slurm_conf import node_conf
from tests.strategies import a_spec
from tests.unit.operations.preflight.test_machine_fit import a_machine


def workers(*, selector: dict[str, str] | None = None, gpus: int = 0, **layout: int) -> PlannedPods:
    cpus = layout["sockets"] * layout["cores_per_socket"] * layout["threads_per_core"] if layout else 4
    spec = a_spec(node_sets=[{"name": "cpu", "cpus": cpus, "memory_gib": 8, **layout}])
    command = ["start.sh", f"conf={node_conf(spec, spec.node_sets[0])}", "processes=4096"]
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    containers = [{"name": "slurmd", "image": "worker", "command": command, "resources": resources}]
    pod = {"containers": containers, "nodeSelector": selector or {}}
    return PlannedPods("node_sets[0]", "worker", 1, {"metadata": {}, "spec": pod})


def machine(cpus: str | None, name: str = "n1") -> Any:
    made = a_machine(name)
    made["status"]["capacity"] = {} if cpus is None else {"cpu": cpus}
    return made


@pytest.mark.parametrize(
    ("cpus", "possible"),
    [("192", True), ("384", True), ("96", False), ("200", False), ("180", False), (None, True)],
)
def test_a_layout_fits_a_machine_of_its_cores_with_as_many_threads_or_more(cpus: str | None, *, possible: bool) -> None:
    found = [*layout_findings([workers(sockets=2, cores_per_socket=48, threads_per_core=2)], [machine(cpus)])]

    assert [finding.severity for finding in found] == ([] if possible else [Severity.WARNED])


def test_a_finding_names_a_machine_and_what_it_has() -> None:
    machines = [machine("192"), machine("96", "n3"), machine("128", "n2")]
    (found,) = layout_findings([workers(sockets=2, cores_per_socket=48, threads_per_core=2)], machines)

    assert found.path == "node_sets[0].sockets"
    assert found.found.startswith("2 of 3 machines cannot have 2 sockets of 48 cores of 2 threads: n2 has 128 CPUs, ")


def test_machines_that_the_pods_do_not_choose_are_not_judged() -> None:
    layout = {"sockets": 2, "cores_per_socket": 48, "threads_per_core": 2}

    assert [*layout_findings([workers(selector={"pool": "gpu"}, **layout)], [machine("96")])] == []


def test_machines_without_the_devices_of_the_pods_are_not_judged() -> None:
    pods = workers(gpus=8, sockets=2, cores_per_socket=48, threads_per_core=2)
    with_gpus = machine("96", "n2")
    with_gpus["status"]["allocatable"]["nvidia.com/gpu"] = "8"

    assert [*layout_findings([pods], [machine("36")])] == []
    assert [found.found.partition(":")[0] for found in layout_findings([pods], [machine("36"), with_gpus])] == [
        "1 of 1 machines cannot have 2 sockets of 48 cores of 2 threads"
    ]


def test_a_node_set_without_a_layout_fits_every_machine() -> None:
    assert [*layout_findings([workers()], [machine("7")])] == []
