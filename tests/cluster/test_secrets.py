"""No generated secret is anywhere in plain text: not in state, logs, ConfigMaps, environments or arguments."""

import base64
from pathlib import Path

import pytest

from tests.cluster.slurm import Slurm

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def secrets(slurm: Slurm) -> dict[str, list[bytes]]:
    """The generated values, in the forms in which they could leak."""
    munge = base64.b64decode(slurm.api.read_namespaced_secret("munge-key", slurm.namespace).data["munge.key"])
    host = slurm.api.read_namespaced_secret("ssh-host-key", slurm.namespace).data
    host_key = base64.b64decode(host["ssh_host_ed25519_key"])
    body = b"".join(host_key.splitlines()[1:-1])
    return {
        "munge key": [munge, base64.b64encode(munge), munge.hex().encode()],
        "host key": [host_key, host_key.splitlines()[2], base64.b64encode(body)],
    }


def leaks(content: bytes, secrets: dict[str, list[bytes]]) -> list[str]:
    return [name for name, forms in secrets.items() if any(form in content for form in forms)]


def test_the_search_finds_a_secret_where_there_is_one(secrets: dict[str, list[bytes]]) -> None:
    assert leaks(b"key: " + secrets["munge key"][1], secrets) == ["munge key"]


def test_the_engines_state_holds_no_secret(slurm: Slurm, secrets: dict[str, list[bytes]]) -> None:
    files = [file for file in (slurm.folder / "engine").rglob("*") if file.is_file()]

    assert files
    assert [(file.name, leaks(file.read_bytes(), secrets)) for file in files if leaks(file.read_bytes(), secrets)] == []


def test_config_maps_and_pod_specs_hold_no_secret(slurm: Slurm, secrets: dict[str, list[bytes]]) -> None:
    kinds = "configmaps,pods,statefulsets,services,events,controllerrevisions"
    objects = slurm.kubernetes.run("get", kinds, "--namespace", slurm.namespace, "--output", "yaml")

    assert "slurm.conf" in objects
    assert leaks(objects.encode(), secrets) == []


def test_logs_hold_no_secret(slurm: Slurm, secrets: dict[str, list[bytes]]) -> None:
    read = set()
    for pod in slurm.api.list_namespaced_pod(slurm.namespace).items:
        for container in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]:
            if container.state.waiting:
                continue
            log = slurm.api.read_namespaced_pod_log(pod.metadata.name, slurm.namespace, container=container.name)
            assert leaks(log.encode(), secrets) == [], f"{pod.metadata.name} {container.name}"
            read.add(container.name)

    assert {"slurmctld", "slurmd", "sshd"} <= read


def test_no_process_has_a_secret_in_its_arguments_or_environment(secrets: dict[str, list[bytes]]) -> None:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for kind in ("cmdline", "environ"):
            try:
                content = (process / kind).read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            found += [(process.name, kind, name) for name in leaks(content, secrets)]

    assert found == []


def test_users_read_neither_key(slurm: Slurm) -> None:
    for place in ("login", "job"):
        prefix = "" if place == "login" else "srun "
        for path in (
            "/etc/munge-key/munge.key",
            "/run/munge-key/munge.key",
            "/etc/ssh-host/ssh_host_ed25519_key",
        ):
            assert slurm.ssh(f"{prefix}cat {path}", check=False).returncode != 0, f"{path} from {place}"
