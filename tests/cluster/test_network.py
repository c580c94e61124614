"""Only what talks may talk."""

from collections.abc import Iterator

import pytest

from tests.cluster.slurm import Slurm
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images

pytestmark = pytest.mark.cluster

PROBE = "timeout 3 bash -c '</dev/tcp/{address}/{port}'"


@pytest.fixture(scope="module")
def stranger(slurm: Slurm) -> Iterator[tuple[str, str, str]]:
    """A pod in a namespace that has nothing to do with the cluster."""
    namespace = "stranger"
    slurm.api.create_namespace({"metadata": {"name": namespace}})
    container = {"name": "shell", "image": images.references()["login"], "command": ["sleep", "3600"]}
    slurm.api.create_namespaced_pod(
        namespace,
        {
            "metadata": {"name": "pod"},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        },
    )
    wait_until(
        lambda: slurm.api.read_namespaced_pod("pod", namespace).status.phase == "Running",
        what="the stranger's pod runs",
    )
    yield namespace, "pod", "shell"
    slurm.api.delete_namespace(namespace)


def reaches(kubernetes: Kubernetes, source: tuple[str, str, str], address: str, port: int) -> bool:
    probe = f"{PROBE.format(address=address, port=port)} 2>/dev/null && echo open || echo closed"
    return kubernetes.exec(*source, "bash", "-c", probe).strip() == "open"


def address_of(slurm: Slurm, pod: str) -> str:
    return str(slurm.api.read_namespaced_pod(pod, slurm.namespace).status.pod_ip)


def test_the_probe_sees_an_open_port(kubernetes: Kubernetes, slurm: Slurm) -> None:
    """From where one may: otherwise a broken probe would make all the others pass."""
    login = (slurm.namespace, "login-0", "sshd")

    assert reaches(kubernetes, login, address_of(slurm, "controller-0"), 6817)


@pytest.mark.parametrize(
    ("pod", "port"),
    [("controller-0", 6817), ("cpu-0", 6818), ("login-0", 2222), ("login-0", 60001), ("cpu-0", 60001)],
)
def test_a_pod_of_another_namespace_reaches_no_daemon(
    kubernetes: Kubernetes, slurm: Slurm, stranger: tuple[str, str, str], pod: str, port: int
) -> None:
    assert not reaches(kubernetes, stranger, address_of(slurm, pod), port)
