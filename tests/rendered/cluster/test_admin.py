"""Root in the jail: what it has, and what it has not."""

import pytest

from tests.rendered.cluster.clusters import a_deployment, capabilities_of, containers_of, mounts_of, pod_of, volume_of

TREE = "0123456789ab"


@pytest.mark.parametrize(("spec", "replicas"), [({}, 0), ({"admin_shell": True}, 1)])
def test_the_pod_is_there_only_when_the_spec_says_so(spec: dict[str, bool], replicas: int) -> None:
    stateful_set = a_deployment(jail=spec).one("hpc-admin", "StatefulSet")
    assert stateful_set.inputs["spec"]["replicas"] == replicas
    assert stateful_set.inputs["metadata"]["name"] == "admin"


def test_its_root_is_the_active_tree_and_it_sees_homes_and_submounts_like_a_session() -> None:
    submounts = [
        {"path": "/data", "existing_claim": "data"},
        {"path": "/local", "host_path": "/l", "roles": ["worker"]},
    ]
    pod = pod_of(a_deployment(jail={"active": TREE, "submounts": submounts}), "hpc-admin")
    mounts = mounts_of(containers_of(pod)["admin"])
    assert {path: mount.get("subPath") for path, mount in mounts.items() if mount["name"] == "jail"} == {
        **{f"/{name}": f"trees/{TREE}/{name}" for name in ("etc", "opt", "root", "srv", "usr", "var")},
        "/.tree": f"trees/{TREE}",
        "/home": "home",
    }
    assert mounts.keys() - {"/tmp", "/data"} == {path for path, mount in mounts.items() if mount["name"] == "jail"}
    assert volume_of(pod, mounts["/.tree"]) == {"persistentVolumeClaim": {"claimName": "jail"}}


def test_it_has_no_munge_no_ssh_key_no_configuration_of_slurm_and_cannot_mount() -> None:
    pod = pod_of(a_deployment(), "hpc-admin")
    assert containers_of(pod).keys() == {"prepare", "admin"}
    assert all({"persistentVolumeClaim", "emptyDir"} & volume.keys() for volume in pod["volumes"])
    assert not {"SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE", "MKNOD", "NET_ADMIN", "SETPCAP"} & capabilities_of(
        containers_of(pod)["admin"]
    )


def test_only_its_root_can_be_written_for_the_links_to_the_tree() -> None:
    containers = containers_of(pod_of(a_deployment(), "hpc-admin"))
    assert containers["admin"]["securityContext"]["readOnlyRootFilesystem"] is False
    assert containers["prepare"]["securityContext"]["readOnlyRootFilesystem"] is True


def test_it_is_ready_when_the_trees_shell_is_found_through_its_links() -> None:
    probe = containers_of(pod_of(a_deployment(), "hpc-admin"))["admin"]["startupProbe"]
    assert probe["exec"]["command"] == ["/bin/sh", "-c", "exit 0"]


def test_pulumi_does_not_wait_for_it() -> None:
    annotations = a_deployment().one("hpc-admin", "StatefulSet").inputs["metadata"]["annotations"]
    assert annotations["pulumi.com/skipAwait"] == "true"
