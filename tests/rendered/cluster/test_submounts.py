"""Volumes inside the jail: the same path in the containers of the chosen roles."""

from typing import Any

import pytest

from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import a_deployment, a_node_set, containers_of, mounts_of, pod_of, volume_of

DATA = {"path": "/data", "existing_claim": "datasets", "sub_path": "public", "read_only": True}
LOCAL = {"path": "/mnt/local", "host_path": "/mnt/nvme", "roles": ["worker"]}
SCRATCH = {"path": "/scratch", "scratch_gib": 20}
MEMORY = {"path": "/dev/shm", "memory_gib": 1.5, "roles": ["worker"]}


def seen(deployment: Deployment, role: str, path: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The volume and the mount at a path in the container of a role; None when there is none."""
    name, daemon = {"worker": ("hpc-cpu", "slurmd"), "login": ("hpc-login", "sshd")}[role]
    pod = pod_of(deployment, name)
    mount = mounts_of(containers_of(pod)[daemon]).get(path)
    return None if mount is None else (volume_of(pod, mount), mount)


@pytest.mark.parametrize(
    ("submount", "volume"),
    [
        (DATA, {"persistentVolumeClaim": {"claimName": "datasets"}}),
        (LOCAL, {"hostPath": {"path": "/mnt/nvme", "type": "Directory"}}),
        (SCRATCH, {"emptyDir": {"sizeLimit": "20Gi"}}),
        (MEMORY, {"emptyDir": {"medium": "Memory", "sizeLimit": "1536Mi"}}),
    ],
)
def test_every_kind_of_volume_is_seen_by_jobs_at_its_path(submount: dict[str, Any], volume: dict[str, Any]) -> None:
    found = seen(a_deployment(jail={"submounts": [submount]}), "worker", submount["path"])
    assert found is not None
    assert found[0] == volume
    assert found[1].get("readOnly", False) == submount.get("read_only", False)
    assert found[1].get("subPath") == submount.get("sub_path")


def test_a_submount_is_seen_on_its_roles_only() -> None:
    deployment = a_deployment(jail={"submounts": [DATA, LOCAL]})
    assert seen(deployment, "login", "/data") is not None
    assert seen(deployment, "login", "/mnt/local") is None


def test_a_submount_of_a_node_set_is_in_no_other_pod_of_workers() -> None:
    scratch = {"path": "/scratch", "host_path": "/mnt/nvme", "roles": ["worker"], "node_sets": ["gpu"]}
    node_sets = [a_node_set(), a_node_set(name="gpu")]
    deployment = a_deployment(node_sets=node_sets, jail={"submounts": [scratch]})
    places = {name: containers_of(pod_of(deployment, f"hpc-{name}"))["slurmd"] for name in ("cpu", "gpu")}
    assert [name for name, daemon in places.items() if "/scratch" in mounts_of(daemon)] == ["gpu"]
    assert [name for name, daemon in places.items() if "bind=/scratch" in daemon["command"]] == ["gpu"]
    health = deployment.one("hpc-health", "ConfigFiles").inputs["files"]
    assert [name for name, text in health.items() if '"/scratch"' in text] == ["gpu.json"]


def test_a_submount_of_login_nodes_is_in_no_other_pod_of_sessions() -> None:
    local = {"path": "/fast", "host_path": "/mnt/nvme", "logins": ["login-large"]}
    login: dict[str, Any] = {"pools": {"large": {}, "small": {}}}
    deployment = a_deployment(login=login, jail={"admin_shell": True, "submounts": [local]})
    daemons = {
        "login": containers_of(pod_of(deployment, "hpc-login"))["sshd"],
        "large": containers_of(pod_of(deployment, "hpc-login-large"))["sshd"],
        "small": containers_of(pod_of(deployment, "hpc-login-small"))["sshd"],
        "admin": containers_of(pod_of(deployment, "hpc-admin"))["admin"],
        "cpu": containers_of(pod_of(deployment, "hpc-cpu"))["slurmd"],
    }
    assert [name for name, daemon in daemons.items() if "/fast" in mounts_of(daemon)] == ["large", "cpu"]
    assert [name for name, daemon in daemons.items() if "bind=/fast" in daemon["command"]] == ["large", "cpu"]


@pytest.mark.parametrize("logins", [["login"], ["login-large", "login"]])
def test_the_admin_shell_has_a_submount_that_names_all_login_nodes(logins: list[str]) -> None:
    local = {"path": "/fast", "host_path": "/mnt/nvme", "logins": logins}
    pools: dict[str, Any] = {name.removeprefix("login-"): {} for name in logins if name != "login"}
    deployment = a_deployment(login={"pools": pools}, jail={"admin_shell": True, "submounts": [local]})
    assert "/fast" in mounts_of(containers_of(pod_of(deployment, "hpc-admin"))["admin"])


def test_submounts_of_different_node_sets_may_have_the_same_path() -> None:
    nvme = {"path": "/scratch", "host_path": "/mnt/nvme", "roles": ["worker"], "node_sets": ["gpu"]}
    disk = {"path": "/scratch", "scratch_gib": 5, "roles": ["worker"], "node_sets": ["cpu"]}
    deployment = a_deployment(node_sets=[a_node_set(), a_node_set(name="gpu")], jail={"submounts": [nvme, disk]})
    kinds = {}
    for name in ("cpu", "gpu"):
        pod = pod_of(deployment, f"hpc-{name}")
        kinds[name] = next(iter(volume_of(pod, mounts_of(containers_of(pod)["slurmd"])["/scratch"])))
    assert kinds == {"cpu": "emptyDir", "gpu": "hostPath"}


def test_a_submount_takes_the_place_of_the_volume_that_is_there_by_default() -> None:
    submounts = [
        {"path": "/home", "existing_claim": "homes"},
        {"path": "/tmp", "host_path": "/mnt/nvme/tmp", "roles": ["worker"]},
        {"path": "/var/spool/slurmd", "memory_gib": 0.5, "roles": ["worker"]},
        MEMORY,
    ]
    deployment = a_deployment(jail={"submounts": submounts})
    volumes = {}
    for path in ("/home", "/tmp", "/var/spool/slurmd", "/dev/shm"):
        found = seen(deployment, "worker", path)
        assert found is not None
        volumes[path] = next(iter(found[0]))
    assert volumes == {
        "/home": "persistentVolumeClaim",
        "/tmp": "hostPath",
        "/var/spool/slurmd": "emptyDir",
        "/dev/shm": "emptyDir",
    }
    assert seen(deployment, "login", "/tmp") != seen(deployment, "worker", "/tmp")


@pytest.mark.parametrize(
    ("role", "path", "size"),
    [("worker", "/tmp", "2048Mi"), ("worker", "/dev/shm", "4096Mi"), ("login", "/tmp", "2048Mi")],
)
def test_temporary_directories_are_in_memory_and_a_share_of_it_unless_the_spec_says_otherwise(
    role: str, path: str, size: str
) -> None:
    found = seen(a_deployment(), role, path)
    assert found is not None
    assert found[0] == {"emptyDir": {"medium": "Memory", "sizeLimit": size}}


def test_temporary_directories_of_a_smaller_pod_are_smaller() -> None:
    small = a_node_set(pod_resources={"limits": {"memory": "1Gi"}})
    found = seen(a_deployment(node_sets=[small]), "worker", "/tmp")
    assert found is not None
    assert found[0] == {"emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}


def swept(*submounts: dict[str, Any]) -> list[str]:
    """Return the directories in which nothing stays of a user whose last job on a node has ended."""
    pod = pod_of(a_deployment(jail={"submounts": list(submounts)}), "hpc-cpu")
    return [word.removeprefix("own=") for word in containers_of(pod)["slurmd"]["command"] if word.startswith("own=")]


def test_leftovers_go_from_what_is_the_pods_own_and_from_nothing_that_others_may_use() -> None:
    assert swept() == ["/tmp", "/dev/shm"]
    assert swept({"path": "/tmp", "host_path": "/mnt/nvme/tmp"}) == ["/dev/shm"]
    assert swept({"path": "/tmp", "existing_claim": "temporary"}) == ["/dev/shm"]
    assert swept({"path": "/tmp", "scratch_gib": 5}) == ["/dev/shm", "/tmp"]


def test_an_empty_directory_for_everyone_is_given_the_mode_of_tmp_and_the_spool_stays_slurmds() -> None:
    spool = {"path": "/var/spool/slurmd", "scratch_gib": 5, "roles": ["worker"]}
    prepare = containers_of(pod_of(a_deployment(jail={"submounts": [SCRATCH, spool]}), "hpc-cpu"))["prepare"]
    script = prepare["command"][-1].splitlines()
    assert "chmod 1777 /scratch" in script
    assert "chmod 0755 /run/slurm /var/log/slurm /var/spool/slurmd" in script
    assert {"/scratch", "/var/spool/slurmd"} <= mounts_of(prepare).keys()


def test_a_volume_that_existed_before_keeps_its_mode() -> None:
    prepare = containers_of(pod_of(a_deployment(jail={"submounts": [DATA, LOCAL]}), "hpc-cpu"))["prepare"]
    assert not {"/data", "/mnt/local"} & mounts_of(prepare).keys()


def test_the_order_of_submounts_changes_no_pod() -> None:
    one, other = (a_deployment(jail={"submounts": submounts}) for submounts in ([DATA, SCRATCH], [SCRATCH, DATA]))
    for name in ("hpc-cpu", "hpc-login", "hpc-admin"):
        assert pod_of(one, name) == pod_of(other, name)


def test_claims_of_submounts_and_static_volumes_must_exist_before_anything_is_applied() -> None:
    jail = {"submounts": [SCRATCH, DATA, {**LOCAL, "path": "/x"}], "storage": {"static_volume": "nfs-export"}}
    references = a_deployment(jail=jail).one("hpc-prerequisites").inputs["references"]
    found = {reference["path"]: (reference["kind"], reference["name"], reference["holds"]) for reference in references}
    assert found["jail.submounts[1].existing_claim"] == (
        "PersistentVolumeClaim",
        "datasets",
        "ReadOnlyMany|ReadWriteMany",
    )
    assert found["jail.storage.static_volume"] == ("PersistentVolume", "nfs-export", "jail")
    assert "jail.storage.storage_class" not in found


def test_what_jobs_see_is_what_their_nodes_pod_has_and_not_yet_what_the_spec_says() -> None:
    def files(deployment: Deployment) -> str:
        return str(deployment.one("hpc-slurm-config").inputs["files"]["plugstack.conf"])

    without, with_data = a_deployment(), a_deployment(jail={"submounts": [DATA]})
    assert files(without) == files(with_data), "a running node would look for a volume that its pod has not"
    command = containers_of(pod_of(with_data, "hpc-cpu"))["slurmd"]["command"]
    binds = [word for word in command if word.startswith("bind=")]
    own = "bind=/run/slurm/job-files:ro"
    assert binds == ["bind=/data:ro", "bind=/dev/shm", "bind=/home", "bind=/tmp", own]
    assert "binds=/run/slurm/jail-binds" in files(with_data)
