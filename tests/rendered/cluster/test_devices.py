"""Devices of a node set, asked for once: in the pod, in the node's registration and in Slurm's files."""

import pytest

from soperator_pulumi.render import layout
from tests.rendered.cluster.clusters import a_deployment, a_node_set, containers_of, mounts_of, pod_of, worker_pods

TOPOLOGY = '<system version="1"><cpu numaid="0"/></system>\n'


def test_a_pod_requests_its_devices_and_no_more() -> None:
    node_set = a_node_set(
        gpus={"count": 6, "type": "h100", "mig": {"1g.10gb": 14}},
        rdma={"resource": "rdma/hca_shared", "count": 4},
        extra_resources={"nvidia.com/imex-channel": 1},
        huge_pages={"2Mi": "4Gi"},
    )
    resources = containers_of(pod_of(a_deployment(node_sets=[node_set]), "hpc-cpu"))["slurmd"]["resources"]
    devices = {
        "nvidia.com/gpu": "6",
        "nvidia.com/mig-1g.10gb": "14",
        "rdma/hca_shared": "4",
        "nvidia.com/imex-channel": "1",
        "hugepages-2Mi": "4Gi",
    }
    assert resources["requests"] == resources["limits"], "Kubernetes takes no others, and the pod stays Guaranteed"
    assert {name: limit for name, limit in resources["limits"].items() if name not in {"cpu", "memory"}} == devices


def test_devices_are_next_to_resources_of_the_users_own() -> None:
    node_set = a_node_set(gpus={"count": 8}, pod_resources={"requests": {"cpu": 1}, "limits": {"memory": "2Gi"}})
    resources = containers_of(pod_of(a_deployment(node_sets=[node_set]), "hpc-cpu"))["slurmd"]["resources"]
    assert resources == {
        "requests": {"cpu": "1", "nvidia.com/gpu": "8"},
        "limits": {"memory": "2Gi", "nvidia.com/gpu": "8"},
    }


def test_only_slurmd_has_devices() -> None:
    pod = pod_of(a_deployment(node_sets=[a_node_set(gpus={"count": 8})]), "hpc-cpu")
    having = {
        name for name, container in containers_of(pod).items() if "nvidia.com/gpu" in container["resources"]["limits"]
    }
    assert having == {"slurmd"}


TAINTS: dict[str, tuple[dict[str, object], list[str]]] = {
    "no devices": ({}, []),
    "GPUs": ({"gpus": {"count": 8}}, ["nvidia.com/gpu"]),
    "GPUs of another maker": ({"gpus": {"count": 8, "resource": "amd.com/gpu"}}, ["amd.com/gpu"]),
    "MIG instances": ({"gpus": {"mig": {"1g.10gb": 7}}}, ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu"]),
    "GPUs and RDMA": ({"gpus": {"count": 8}, "rdma": {"resource": "rdma/hca"}}, ["nvidia.com/gpu", "rdma/hca"]),
    "huge pages": ({"huge_pages": {"2Mi": "2Mi"}}, []),
}


@pytest.mark.parametrize("case", range(len(TAINTS)), ids=TAINTS)
def test_pods_tolerate_the_taints_of_machines_with_their_devices(case: int) -> None:
    own = {"key": "example.com/team", "operator": "Exists"}
    _, keys = [*TAINTS.values()][case]
    pod = worker_pods(*({"tolerations": [own], **devices} for devices, _ in TAINTS.values()))[case]
    assert pod["tolerations"] == [own, *({"key": key, "operator": "Exists"} for key in keys)]


def test_pods_have_the_runtime_class_of_their_node_set() -> None:
    deployment = a_deployment(node_sets=[a_node_set(runtime_class="nvidia")])
    assert pod_of(deployment, "hpc-cpu")["runtimeClassName"] == "nvidia"
    assert not pod_of(deployment, "hpc-login").get("runtimeClassName")


def test_the_workers_of_a_node_set_alone_are_on_its_networks() -> None:
    networks = ["rail-0", "default/rail-1"]
    deployment = a_deployment(node_sets=[a_node_set(networks=networks), a_node_set(name="other")])
    named = {
        resource.name: resource.inputs["spec"]["template"]["metadata"]
        .get("annotations", {})
        .get("k8s.v1.cni.cncf.io/networks")
        for resource in deployment.recorded
        if "template" in resource.inputs.get("spec", {})
    }
    assert named.pop("hpc-cpu") == "rail-0,default/rail-1"
    assert {"hpc-other", "hpc-login", "hpc-controller"} <= named.keys()
    assert {*named.values()} == {None}


LOCKING: dict[str, tuple[dict[str, object], bool]] = {
    "GPUs": ({"gpus": {"count": 1}}, False),
    "RDMA": ({"rdma": {"resource": "rdma/hca"}}, True),
    "RDMA, not allowed": ({"rdma": {"resource": "rdma/hca"}, "lock_memory": False}, False),
    "allowed": ({"lock_memory": True}, True),
}


@pytest.mark.parametrize("case", range(len(LOCKING)), ids=LOCKING)
def test_jobs_lock_memory_where_their_nodes_have_rdma_unless_the_spec_differs(case: int) -> None:
    _, locks = [*LOCKING.values()][case]
    slurmd = containers_of(worker_pods(*(keys for keys, _ in LOCKING.values()))[case])["slurmd"]
    assert ("lock_memory" in slurmd["command"]) is locks
    assert ("SYS_RESOURCE" in slurmd["securityContext"]["capabilities"]["add"]) is locks


def test_a_changed_count_reaches_the_pod_its_registration_and_its_check_at_once() -> None:
    def words(count: int) -> set[str]:
        deployment = a_deployment(node_sets=[a_node_set(gpus={"count": count, "type": "h100"})])
        return set(containers_of(pod_of(deployment, "hpc-cpu"))["slurmd"]["command"])

    assert words(8) ^ words(4) == {
        *(f"gpus=nvidia:{count}:h100" for count in (4, 8)),
        *(f"conf=Feature=cpu CPUs=4 RealMemory=7936 Gres=gpu:h100:{count}" for count in (4, 8)),
    }


def test_a_layout_reaches_the_registration_of_a_node_and_the_sockets_of_its_gpus_at_once() -> None:
    def words(**layout: object) -> set[str]:
        gpus = {"count": 2, **({"sockets": [0, 1]} if layout else {})}
        deployment = a_deployment(node_sets=[a_node_set(gpus=gpus, **layout)])
        return set(containers_of(pod_of(deployment, "hpc-cpu"))["slurmd"]["command"])

    assert words(sockets=2, cores_per_socket=1, threads_per_core=2) ^ words() == {
        "cpu_layout=2:1",
        "gpu_sockets=0,1",
        "conf=Feature=cpu CPUs=4 Sockets=2 CoresPerSocket=1 ThreadsPerCore=2 RealMemory=7936 Gres=gpu:2",
        "conf=Feature=cpu CPUs=4 RealMemory=7936 Gres=gpu:2",
    }


def test_variables_are_arguments_of_the_start_which_lists_them_for_jobs() -> None:
    node_set = a_node_set(environment={"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "$(mlx5)"})
    command = containers_of(pod_of(a_deployment(node_sets=[node_set]), "hpc-cpu"))["slurmd"]["command"]
    assert [word for word in command if word.startswith("environment=")] == [
        "environment=NCCL_DEBUG=INFO",
        "environment=NCCL_IB_HCA=$$(mlx5)",
    ], "Kubernetes would replace $(mlx5)"


def test_the_topology_for_nccl_is_a_file_of_jobs_that_nccl_finds() -> None:
    deployment = a_deployment(node_sets=[a_node_set(nccl_topology=TOPOLOGY)])
    config_map = deployment.one("hpc-cpu-nccl-topology").inputs
    assert config_map["data"] == {"topology.xml": TOPOLOGY}
    slurmd = containers_of(pod_of(deployment, "hpc-cpu"))["slurmd"]
    (directory,) = [mount for mount in slurmd["volumeMounts"] if mount["mountPath"].endswith("/nccl")]
    assert f"environment=NCCL_TOPO_FILE={directory['mountPath']}/topology.xml" in slurmd["command"]
    assert directory["mountPath"].startswith(f"{layout.JOB_FILES}/"), "jobs see it"
    assert f"bind={layout.JOB_FILES}:ro" in slurmd["command"]


def test_without_a_topology_there_is_no_file_of_it() -> None:
    deployment = a_deployment()
    assert not any("nccl" in resource.name for resource in deployment.recorded)
    assert not any("nccl" in path for path in mounts_of(containers_of(pod_of(deployment, "hpc-cpu"))["slurmd"]))


def test_slurmctld_finds_an_empty_file_where_nodes_have_their_resources() -> None:
    """It looks into each file that gres.conf includes, and waits a minute for one that is missing."""
    deployment = a_deployment(node_sets=[a_node_set(gpus={"count": 8})])
    included = deployment.one("hpc-slurm-config").inputs["files"]["gres.conf"].splitlines()[-1].split()[1]
    prepare, slurmctld = (
        containers_of(pod_of(deployment, "hpc-controller"))[name] for name in ("prepare", "slurmctld")
    )
    (directory,) = (path for path in mounts_of(slurmctld) if included.startswith(f"{path}/"))
    assert f": > {included}\n" in prepare["command"][-1]
    assert mounts_of(prepare)[directory]["name"] == mounts_of(slurmctld)[directory]["name"]
