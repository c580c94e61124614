"""Machines on which pods fit, judged by nodes as the API answers them, and by their kubelets."""

from typing import Any, cast

import pytest

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.preflight.admitting_machines import is_chosen
from soperator_pulumi.operations.preflight.api_server import kubelet_findings
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, Severity
from soperator_pulumi.operations.preflight.machine_fit import fit_findings, layout_findings, limit_findings
from soperator_pulumi.operations.preflight.planned import PlannedPods
from soperator_pulumi.render.slurm_conf import node_conf
from tests.strategies import a_spec

ALLOCATABLE = {"cpu": "31850m", "memory": "126Gi", "pods": "110"}
GPU = "nvidia.com/gpu"


def a_machine(
    name: str = "n1", *, taints: list[dict[str, str]] | None = None, ready: bool = True, **allocatable: str
) -> Any:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "pool": "cpu", "generation": "4"}},
        "spec": {"taints": taints or []},
        "status": {
            "allocatable": {
                **ALLOCATABLE,
                **{key.replace("_gpu", ".com/gpu"): text for key, text in allocatable.items()},
            },
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "nodeInfo": {"kubeletVersion": "v1.33.2"},
        },
    }


def pods(replicas: int = 1, spec: dict[str, Any] | None = None, **requests: str) -> PlannedPods:
    amounts = {
        "cpu": "4",
        "memory": "16Gi",
        **{key.replace("_gpu", ".com/gpu"): request for key, request in requests.items()},
    }
    resources = {"requests": amounts, "limits": amounts}
    small = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    containers = {
        "containers": [{"name": "slurmd", "image": "worker", "resources": resources}],
        "initContainers": [
            {"name": "prepare", "image": "worker", "resources": small},
            {"name": "munged", "image": "munge", "restartPolicy": "Always", "resources": small},
        ],
    }
    return PlannedPods("node_sets[0]", "worker", replicas, {"metadata": {}, "spec": {**containers, **(spec or {})}})


def judged(wanted: PlannedPods, *machines: Any) -> Diagnosis:
    (found,) = fit_findings([wanted], machines)
    return found


def test_a_pod_needs_what_its_container_and_its_sidecars_request() -> None:
    assert {name: str(value) for name, value in pods().requests.items()} == {"cpu": "4.100", "memory": "17246978048"}


def test_pods_that_fit_pass() -> None:
    found = judged(pods(replicas=7), a_machine())
    assert (found.severity, found.found) == (
        Severity.PASSED,
        "1 of 1 machines fit, with room for 31 CPUs and 125 GiB",
    )


def test_the_size_that_fits_is_one_that_all_fitting_machines_have_after_their_daemon_sets() -> None:
    machines = [a_machine(), a_machine("n2", cpu="64", memory="100Gi"), a_machine("n3", cpu="2")]
    (found,) = fit_findings([pods()], machines, daemon_sets=[a_daemon_set("1")])

    assert found.found == "2 of 3 machines fit, with room for 30 CPUs and 97 GiB"
    (at_most,) = fit_findings([pods(cpu="30", memory="97Gi")], machines, daemon_sets=[a_daemon_set("1")])
    assert (at_most.severity, at_most.found) == (Severity.PASSED, found.found)


def test_no_size_is_reported_for_a_machine_without_a_whole_cpu() -> None:
    found = judged(pods(cpu="500m", memory="256Mi"), a_machine(cpu="900m"))
    assert (found.severity, found.found) == (Severity.PASSED, "1 of 1 machines fit")


def test_machines_without_room_for_all_are_a_warning_as_an_autoscaler_may_add_some() -> None:
    found = judged(pods(replicas=20), a_machine(), a_machine("n2"))
    assert (found.severity, found.found) == (Severity.WARNED, "2 machines with room for 14 of its 20 pods")


def test_a_pod_larger_than_each_machine_is_refused_with_the_amounts() -> None:
    found = judged(pods(cpu="32"), a_machine())
    assert (found.severity, found.found) == (
        Severity.REFUSED,
        "no machine can allocate a pod: the largest has 31.85 of 32.1 cpu",
    )
    assert found.cure == (
        "Request at most 31 CPUs and 125.875 GiB, which fit machine n1: in node_sets[0], lower cpus and memory_gib, or "
        "keep them and set pod_resources. Or choose larger machines."
    )


def a_daemon_set(cpu: str, spec: dict[str, Any] | None = None) -> Any:
    container = {"name": "agent", "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}
    return {
        "metadata": {"name": "agent"},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [container], **(spec or {})}}},
    }


def test_what_daemon_sets_request_is_not_left_for_a_pod() -> None:
    (found,) = fit_findings([pods(cpu="31")], [a_machine()], daemon_sets=[a_daemon_set("1500m")])

    assert found.found == "no machine can allocate a pod: the largest has 30.35 of 31.1 cpu"
    assert "at most 30 CPUs and 123.875 GiB" in found.cure


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"pool": "gpu"}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu"]}]}
                        ]
                    }
                }
            }
        },
    ],
    ids=["selector", "affinity"],
)
def test_daemon_sets_of_other_machines_take_nothing(spec: dict[str, Any]) -> None:
    (found,) = fit_findings([pods(cpu="31")], [a_machine()], daemon_sets=[a_daemon_set("16", spec)])

    assert found.severity is Severity.PASSED


def test_the_size_that_fits_is_that_of_a_machine_with_the_devices() -> None:
    large, with_gpus = a_machine("large", cpu="64"), a_machine("gpus", nvidia_gpu="8")
    found = judged(pods(cpu="80", nvidia_gpu="8"), large, with_gpus)

    assert "at most 31 CPUs and 125.875 GiB, which fit machine gpus" in found.cure


def test_a_resource_other_than_cpu_and_memory_that_is_short_is_named_in_the_advice() -> None:
    pages: Any = {"hugepages-2Mi": "4Gi"}
    found = judged(pods(**pages), a_machine())

    assert found.cure == "Request less hugepages-2Mi, or choose larger machines."


def test_a_pod_for_which_no_size_fits_needs_larger_machines() -> None:
    assert judged(pods(), a_machine(cpu="500m")).cure == "Choose larger machines."


@pytest.mark.parametrize(("there", "shown"), [(None, "0 of 8"), ("4", "4 of 8")])
def test_gpus_that_no_machine_can_allocate_are_refused(there: str | None, shown: str) -> None:
    found = judged(pods(nvidia_gpu="8"), a_machine() if there is None else a_machine(nvidia_gpu=there))
    assert found.found == f"no machine can allocate a pod: the largest has {shown} {GPU}"
    assert found.cure == f"Install the device plugin of {GPU}, change the count, or stop what else takes them."


def test_devices_that_the_program_will_list_are_a_warning_but_too_few_cpus_are_not() -> None:
    (found,) = fit_findings([pods(nvidia_gpu="8")], [a_machine()], to_come=["nvidia.com/gpu*"])
    assert found.severity is Severity.WARNED
    (found,) = fit_findings([pods(nvidia_gpu="8", cpu="400")], [a_machine()], to_come=["nvidia.com/gpu*"])
    assert found.severity is Severity.REFUSED


def test_a_device_that_no_machine_and_no_program_lists_is_refused_next_to_one_that_will_be_listed() -> None:
    (found,) = fit_findings([pods(nvidia_gpu="8")], [a_machine()], to_come=["rdma/hca"])
    assert found.severity is Severity.REFUSED
    assert found.cure == f"Install the device plugin of {GPU}, change the count, or stop what else takes them."


def test_a_label_that_no_machine_has_is_refused_with_those_that_there_are() -> None:
    found = judged(pods(spec={"nodeSelector": {"pool": "gpu"}}), a_machine())
    assert (found.severity, found.found) == (
        Severity.REFUSED,
        "none of 1 machines has the label pool=gpu; there are pool=cpu",
    )


def test_a_taint_that_no_pod_tolerates_is_refused() -> None:
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    found = judged(pods(), a_machine(taints=[taint]))
    assert found.severity is Severity.REFUSED
    assert "taints that its pods do not tolerate: nvidia.com/gpu=present:NoSchedule" in found.found


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": GPU, "operator": "Exists"},
        {"operator": "Exists"},
        {"key": GPU, "value": "present", "effect": "NoSchedule"},
    ],
)
def test_a_tolerated_taint_repels_nothing(toleration: dict[str, str]) -> None:
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    assert judged(pods(spec={"tolerations": [toleration]}), a_machine(taints=[taint])).severity is Severity.PASSED


def test_a_taint_that_only_prefers_other_machines_repels_nothing() -> None:
    taint = {"key": "spot", "effect": "PreferNoSchedule"}
    assert judged(pods(), a_machine(taints=[taint])).severity is Severity.PASSED


def test_a_machine_that_is_not_ready_takes_nothing() -> None:
    found = judged(pods(), a_machine(ready=False))
    assert (found.severity, found.found) == (
        Severity.REFUSED,
        "none of the 1 machines of its labels takes pods: n1 not ready, or cordoned",
    )


@pytest.mark.parametrize(
    ("operator", "values", "chosen"),
    [
        ("In", ["cpu"], True),
        ("NotIn", ["cpu"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_an_affinity_chooses_as_the_scheduler_does(operator: str, values: list[str], *, chosen: bool) -> None:
    terms = [{"matchExpressions": [{"key": "pool", "operator": operator, "values": values}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert is_chosen({"affinity": {"nodeAffinity": required}}, a_machine()) is chosen


@pytest.mark.parametrize(("operator", "value", "chosen"), [("Gt", "3", True), ("Gt", "4", False), ("Lt", "5", True)])
def test_an_affinity_compares_numbers(operator: str, value: str, *, chosen: bool) -> None:
    terms = [{"matchExpressions": [{"key": "generation", "operator": operator, "values": [value]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert is_chosen({"affinity": {"nodeAffinity": required}}, a_machine()) is chosen


def test_a_kubelet_without_native_sidecars_is_refused() -> None:
    old = a_machine()
    old["status"]["nodeInfo"]["kubeletVersion"] = "v1.27.9-gke.100"
    assert [kubelet_finding.path for kubelet_finding in kubelet_findings([a_machine("n2"), old])] == ["machine n1"]


def workers_of(*, selector: dict[str, str] | None = None, gpus: int = 0, **layout: int) -> PlannedPods:
    cpus = layout["sockets"] * layout["cores_per_socket"] * layout["threads_per_core"] if layout else 4
    spec = a_spec(node_sets=[{"name": "cpu", "cpus": cpus, "memory_gib": 8, **layout}])
    command = ["start.sh", f"conf={node_conf(spec, spec.node_sets[0])}", "processes=4096"]
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    containers = [{"name": "slurmd", "image": "worker", "command": command, "resources": resources}]
    pod = {"containers": containers, "nodeSelector": selector or {}}
    return PlannedPods("node_sets[0]", "worker", 1, {"metadata": {}, "spec": pod})


def with_cpus(cpus: str | None, name: str = "n1") -> Any:
    made = a_machine(name)
    made["status"]["capacity"] = {} if cpus is None else {"cpu": cpus}
    return made


@pytest.mark.parametrize(
    ("cpus", "possible"),
    [("192", True), ("384", True), ("96", False), ("200", False), ("180", False), (None, True)],
)
def test_a_layout_fits_a_machine_of_its_cores_with_as_many_threads_or_more(cpus: str | None, *, possible: bool) -> None:
    found = [*layout_findings([workers_of(sockets=2, cores_per_socket=48, threads_per_core=2)], [with_cpus(cpus)])]

    assert [finding.severity for finding in found] == ([] if possible else [Severity.WARNED])


def test_a_finding_names_a_machine_and_what_it_has() -> None:
    machines = [with_cpus("192"), with_cpus("96", "n3"), with_cpus("128", "n2")]
    (found,) = layout_findings([workers_of(sockets=2, cores_per_socket=48, threads_per_core=2)], machines)

    assert found.path == "node_sets[0].sockets"
    assert found.found.startswith("2 of 3 machines cannot have 2 sockets of 48 cores of 2 threads: n2 has 128 CPUs, ")


def test_machines_that_the_pods_do_not_choose_are_not_judged() -> None:
    layout = {"sockets": 2, "cores_per_socket": 48, "threads_per_core": 2}

    assert [*layout_findings([workers_of(selector={"pool": "gpu"}, **layout)], [with_cpus("96")])] == []


def test_machines_without_the_devices_of_the_pods_are_not_judged() -> None:
    pods = workers_of(gpus=8, sockets=2, cores_per_socket=48, threads_per_core=2)
    with_gpus = with_cpus("96", "n2")
    with_gpus["status"]["allocatable"]["nvidia.com/gpu"] = "8"

    assert [*layout_findings([pods], [with_cpus("36")])] == []
    assert [found.found.partition(":")[0] for found in layout_findings([pods], [with_cpus("36"), with_gpus])] == [
        "1 of 1 machines cannot have 2 sockets of 48 cores of 2 threads"
    ]


def test_a_node_set_without_a_layout_fits_every_machine() -> None:
    assert [*layout_findings([workers_of()], [with_cpus("7")])] == []


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


def limited_workers(processes: int = 4096) -> PlannedPods:
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
    (text,) = found(Kubelets(n1=4096), limited_workers(), a_machine())
    assert text == (
        "a user may have 4096 processes, and a pod 4096: one user can take the node from others. "
        "Set node_sets[0].max_processes to 3584, or raise the kubelet's podPidsLimit."
    )
    assert found(Kubelets(n1=4096), limited_workers(3584), a_machine()) == []


def test_a_pod_that_is_too_small_for_any_user_is_cured_by_the_kubelet_alone() -> None:
    (text,) = found(Kubelets(n1=512), limited_workers(), a_machine())
    assert text.endswith("one user can take the node from others. Raise the kubelet's podPidsLimit.")


def test_a_login_node_is_judged_by_the_limit_of_its_sessions() -> None:
    command = ["/usr/bin/tini", "--", "/usr/bin/prlimit", "--nproc=2048", "--"]
    spec = {"containers": [{"name": "sshd", "image": "login", "command": command}]}
    (text,) = found(Kubelets(n1=2048), PlannedPods("login", "login", 1, {"metadata": {}, "spec": spec}), a_machine())
    assert "Set login.max_processes to 1536" in text


@pytest.mark.parametrize("limit", [None, -1, 0, KubernetesError("forbidden")])
def test_a_pod_without_a_limit_or_of_an_unknown_one_passes(limit: int | KubernetesError | None) -> None:
    assert found(Kubelets(n1=limit), limited_workers(), a_machine()) == []


def test_one_machine_of_each_kind_answers_and_the_lowest_limit_counts() -> None:
    kubelets = Kubelets(n1=100_000, n2=100_000, n3=4000)
    machines = [of_image("n1", "one"), of_image("n2", "one"), of_image("n3", "other")]
    (text,) = found(kubelets, limited_workers(), *machines)
    assert "a pod 4000" in text
    assert len(kubelets.asked) == 2


def test_pods_without_users_ask_nothing() -> None:
    kubelets = Kubelets()
    spec = {"containers": [{"name": "slurmctld", "image": "controller"}]}
    assert (
        found(kubelets, PlannedPods("controller", "controller", 1, {"metadata": {}, "spec": spec}), a_machine()) == []
    )
    assert kubelets.asked == []
