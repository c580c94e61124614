"""Pods that have nothing to do with a cluster, and probes of the cluster's ports."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.cluster.slurm import VERSION, Slurm, unique
from tests.waiting import wait_until
from tools import images

PROBE = "(timeout 3 bash -c '</dev/tcp/{address}/{port}' 2>/dev/null && echo {name}) &"

Source = tuple[str, str, str]
"""Namespace, pod and container that a probe comes from."""


@contextmanager
def a_stranger(slurm: Slurm) -> Iterator[Source]:
    """Run a pod in a namespace that has nothing to do with the cluster."""
    namespace = unique("stranger")
    slurm.api.create_namespace({"metadata": {"name": namespace}})
    container = {"name": "shell", "image": images.references(slurm=VERSION)["login"], "command": ["sleep", "3600"]}
    slurm.api.create_namespaced_pod(
        namespace,
        {
            "metadata": {"name": "pod"},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        },
    )
    try:
        wait_until(
            lambda: slurm.api.read_namespaced_pod("pod", namespace).status.phase == "Running",
            what="the stranger's pod runs",
        )
        yield namespace, "pod", "shell"
    finally:
        slurm.api.delete_namespace(namespace)


def reached(slurm: Slurm, source: Source, daemons: Sequence[tuple[str, int]]) -> set[str]:
    """Return which of these ports of the cluster's pods a container reaches, all tried at once."""
    addresses = {pod.metadata.name: pod.status.pod_ip for pod in slurm.api.list_namespaced_pod(slurm.namespace).items}
    probes = (PROBE.format(address=addresses[pod], port=port, name=f"{pod}:{port}") for pod, port in daemons)
    return set(slurm.kubernetes.exec(*source, "bash", "-c", f"{' '.join(probes)} wait").split())
