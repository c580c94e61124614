"""Only what talks may talk."""

from collections.abc import Iterator

import pytest

from tests.cluster.slurm import Slurm, unique
from tests.waiting import wait_until
from tools import images

pytestmark = pytest.mark.cluster

PROBE = "(timeout 3 bash -c '</dev/tcp/{address}/{port}' 2>/dev/null && echo {name}) &"

DAEMONS = [("controller-0", 6817), ("cpu-0", 6818), ("login-0", 2222), ("login-0", 60001), ("cpu-0", 60001)]
"""Those that listen, and ports that are open for them."""


@pytest.fixture(scope="module")
def stranger(slurm: Slurm) -> Iterator[tuple[str, str, str]]:
    """A pod in a namespace that has nothing to do with the cluster."""
    namespace = unique("stranger")
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


def reached(slurm: Slurm, source: tuple[str, str, str]) -> set[str]:
    """Return which of the daemons a container reaches, all tried at once."""
    addresses = {pod.metadata.name: pod.status.pod_ip for pod in slurm.api.list_namespaced_pod(slurm.namespace).items}
    probes = (PROBE.format(address=addresses[pod], port=port, name=f"{pod}:{port}") for pod, port in DAEMONS)
    return set(slurm.kubernetes.exec(*source, "bash", "-c", f"{' '.join(probes)} wait").split())


def test_the_probe_sees_an_open_port(slurm: Slurm) -> None:
    """From where one may: otherwise a broken probe would make the other test pass."""
    assert "controller-0:6817" in reached(slurm, (slurm.namespace, "login-0", "sshd"))


def test_a_pod_of_another_namespace_reaches_no_daemon(slurm: Slurm, stranger: tuple[str, str, str]) -> None:
    assert reached(slurm, stranger) == set()
