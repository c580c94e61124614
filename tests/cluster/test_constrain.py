"""Jobs held to their share by cgroups, in Guaranteed pods, as in production."""

from collections.abc import Iterator

import pytest

from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, unique
from tests.conftest import Kubernetes

pytestmark = pytest.mark.cluster

EAT = "python3 -c 'x = bytearray(300 * 2**20); print(len(x))'"


@pytest.fixture(scope="module")
def constrained(
    kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    node_set = {"name": "real", "replicas": 1, "cpus": 1, "memory_gib": 0.5}
    constrain = {"constrain": "cgroup"}
    cluster = a_cluster(name=unique("constrained"), slurm=constrain, node_sets=[node_set], jail=a_jail(JAIL))
    slurm = Slurm(kubernetes, tmp_path_factory.mktemp("constrained"), cluster)
    slurm.up()
    yield slurm
    slurm.destroy()


def test_worker_pods_are_guaranteed(constrained: Slurm) -> None:
    pod = constrained.api.read_namespaced_pod("real-0", constrained.namespace)

    assert pod.status.qos_class == "Guaranteed"


def test_a_job_within_its_memory_runs(constrained: Slurm) -> None:
    assert constrained.ssh(f"srun --mem=450M {EAT.replace('300', '100')}").stdout == f"{100 * 2**20}\n"


def test_a_job_beyond_its_memory_is_ended_and_the_node_goes_on(constrained: Slurm) -> None:
    eaten = constrained.ssh(f"srun --mem=100M {EAT}", check=False)

    assert eaten.returncode != 0
    assert "Out Of Memory" in eaten.stderr
    assert constrained.ssh("srun hostname").stdout == "real-0\n"


def test_a_job_sees_its_processors_alone(constrained: Slurm) -> None:
    assert constrained.ssh("srun -c1 nproc").stdout == "1\n"


def test_nothing_is_privileged(constrained: Slurm) -> None:
    pods = constrained.api.list_namespaced_pod(constrained.namespace).items

    assert [
        container.name
        for pod in pods
        for container in [*pod.spec.init_containers, *pod.spec.containers]
        if container.security_context.privileged or container.security_context.allow_privilege_escalation is not False
    ] == []
