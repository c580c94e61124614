"""Comparing a pod template that is about to be applied with the live one."""

import copy
from typing import Any

import pytest

from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.nodes.live_node_set import IDENTITY_ANNOTATION
from soperator_pulumi.operations.nodes.template_change import changes_pods

OURS: Json = {"f:metadata": {"f:annotations": {f"f:{IDENTITY_ANNOTATION}": {}}}}

AS_WRITTEN: Json = {
    "metadata": {"labels": {"app": "slurmd"}, "annotations": {"team": "hpc"}},
    "spec": {
        "automount_service_account_token": False,
        "termination_grace_period_seconds": 330,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [
            {
                "name": "slurmd",
                "image": "worker:1",
                "lifecycle": {"pre_stop": {"exec_": {"command": ["drain", "1"]}}},
                "ports": [{"container_port": 6818}],
                "resources": {"limits": {"cpu": "0.5", "memory": "8192Mi"}},
                "volume_mounts": [{"name": "jail", "mount_path": "/jail", "read_only": False}],
            }
        ],
        "volumes": [{"name": "shm", "empty_dir": {"medium": "Memory", "size_limit": "1024Mi"}}],
    },
}
"""The program's own template, in Python's spelling: that of a preview by a caller without the right to a dry run."""

APPLIED: Json = {
    "f:metadata": {"f:labels": {"f:app": {}}, "f:annotations": {"f:team": {}}},
    "f:spec": {
        "f:automountServiceAccountToken": {},
        "f:terminationGracePeriodSeconds": {},
        "f:dnsPolicy": {},
        "f:tolerations": {},
        "f:containers": {
            'k:{"name":"slurmd"}': {
                ".": {},
                "f:name": {},
                "f:image": {},
                "f:lifecycle": {"f:preStop": {"f:exec": {"f:command": {}}}},
                "f:ports": {'k:{"containerPort":6818,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}},
                "f:volumeMounts": {'k:{"mountPath":"/jail"}': {"f:readOnly": {}}},
            }
        },
        "f:volumes": {'k:{"name":"shm"}': {"f:emptyDir": {"f:medium": {}, "f:sizeLimit": {}}}},
    },
}
"""What Pulumi has applied. A default is among it, as after a create."""

LIVE: Json = {
    "metadata": {"labels": {"app": "slurmd"}, "annotations": {"team": "hpc", "restarted": "by somebody"}},
    "spec": {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 330,
        "dnsPolicy": "ClusterFirst",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [
            {
                "name": "slurmd",
                "image": "worker:1",
                "imagePullPolicy": "IfNotPresent",
                "lifecycle": {"preStop": {"exec": {"command": ["drain", "1"]}}},
                "ports": [{"containerPort": 6818, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "500m", "memory": "8Gi"}},
                "volumeMounts": [{"name": "jail", "mountPath": "/jail"}],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
    },
}


def a_stateful_set() -> Json:
    somebody: Json = {"f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:restarted": {}}}}}}
    entries = [{"fieldsV1": somebody}, {"fieldsV1": {**OURS, "f:spec": {"f:template": APPLIED}}}]
    return {"metadata": {"managedFields": entries}, "spec": {"template": LIVE}}


def put(tree: Json, path: str, value: Any) -> Json:
    """Return a copy of a tree with another value at a path; without it where that is None."""
    changed = copy.deepcopy(tree)
    *above, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    place: Any = changed
    for key in above:
        place = place[key]
    place[last] = value
    if value is None:
        del place[last]
    return changed


def test_the_programs_own_spelling_of_what_is_there_changes_nothing() -> None:
    assert not changes_pods(AS_WRITTEN, a_stateful_set())


def test_the_answer_to_a_dry_run_of_what_is_there_changes_nothing() -> None:
    assert not changes_pods(LIVE, a_stateful_set())
    assert not changes_pods(LIVE, {"metadata": {}, "spec": {"template": LIVE}})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.annotations.team", "physics"),
        ("metadata.annotations.new", "1"),
        ("spec.priority_class_name", "high"),
        ("spec.automount_service_account_token", True),
        ("spec.tolerations", [{"key": "gpu", "operator": "Exists"}, {"key": "team"}]),
        ("spec.containers.0.image", "worker:2"),
        ("spec.containers.0.lifecycle.pre_stop.exec_.command.1", "1000m"),
        ("spec.containers.0.resources.limits.memory", "8G"),
        ("spec.containers.0.volume_mounts.0.read_only", True),
        ("spec.volumes.0.empty_dir.size_limit", "2Gi"),
    ],
)
def test_another_value_changes_the_pods(path: str, value: object) -> None:
    assert changes_pods(put(AS_WRITTEN, path, value), a_stateful_set())


@pytest.mark.parametrize(
    "path",
    [
        "metadata.annotations.team",
        "metadata.annotations",
        "spec.tolerations",
        "spec.containers.0.lifecycle",
        "spec.containers.0.ports",
        "spec.containers.0.resources.limits.cpu",
        "spec.volumes.0.empty_dir.size_limit",
    ],
)
def test_a_value_that_pulumi_has_applied_and_the_program_no_longer_has_changes_the_pods(path: str) -> None:
    assert changes_pods(put(AS_WRITTEN, path, None), a_stateful_set())


def test_what_someone_else_has_added_stays() -> None:
    without = put(LIVE, "metadata.annotations.restarted", None)
    assert not changes_pods(without, a_stateful_set())


def test_without_a_stateful_set_every_template_changes_the_pods() -> None:
    assert changes_pods(AS_WRITTEN, {"metadata": {}})
