"""The attempts to get out, brought to a cluster and made there."""

import base64
import tarfile
from io import BytesIO
from pathlib import Path

from tests.cluster import attempts
from tests.cluster.attempts import descriptors, devices, kernel, mounts, network, processes, secrets
from tests.cluster.slurm import Slurm

PACKAGE = Path(attempts.__file__).parent
assert [descriptors, devices, kernel, mounts, network, processes, secrets]  # imported for the attempts that they add

OF_USERS = {"reach_the_munge_socket"}
"""A user's clients talk to munged: it says who they are, and no more."""

BY_USERS = sorted(attempts.ATTEMPTS.keys() - OF_USERS)

PROGRAM = "python3 -m attempts"
"""Program of the attempts, in alice's home."""

REFUSALS = {"EPERM", "EACCES", "EROFS", "ENOSYS", "ECONNREFUSED"}
"""Form of a refusal. Any other error may be the attempt's own fault, and would prove nothing."""


def words(name: str) -> str:
    """Return an attempt as the sentence that its name is."""
    return name.replace("_", " ")


def bring(slurm: Slurm) -> None:
    """Put the attempts into alice's home."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file in PACKAGE.glob("*.py"):
            tar.add(file, arcname=f"attempts/{file.name}")
    slurm.ssh("base64 --decode | tar -x", stdin=base64.b64encode(packed.getvalue()).decode())


def addresses(slurm: Slurm, pod: str) -> str:
    """Return where the kubelet of a pod and the API server listen, as environment variables."""
    host = slurm.api.read_namespaced_pod(pod, slurm.namespace).status.host_ip
    service = slurm.api.read_namespaced_service("kubernetes", "default")
    (subset, *_) = slurm.api.read_namespaced_endpoints("kubernetes", "default").subsets
    endpoint = f"{subset.addresses[0].ip}:{subset.ports[0].port}"
    return f"NODE_ADDRESS={host} API_SERVICE={service.spec.cluster_ip} API_ENDPOINT={endpoint}"


def outcomes(said: str) -> dict[str, str]:
    """Return what came of each attempt, by its name."""
    return dict(line.split(" ", 1) for line in said.splitlines())


def assert_blocked(said: str) -> None:
    assert said.startswith("absent: ") or said.split()[:2] in [["blocked:", refusal] for refusal in REFUSALS], said
