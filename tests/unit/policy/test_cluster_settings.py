"""Settings of Slurm that end jobs, keep them out, or let them take what others asked for."""

from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.cluster_settings import SLURM_SETTINGS
from soperator_pulumi.policy.sizes import CANCELLED_JOBS, UNDRAINED_NODES
from tests.unit.policy.views import a_resource_of_ours, an_object, below, paths

CGROUPS = "CgroupPlugin=autodetect\nConstrainCores=yes\nConstrainRAMSpace=yes\n"
PARTITION = "PartitionName=main Nodes=cpu State=UP"


def files(slurm: Any = PARTITION, cgroup: Any = CGROUPS) -> ResourceView:
    return a_resource_of_ours("ConfigFiles", files={"slurm.conf": slurm, "cgroup.conf": cgroup})


@pytest.mark.parametrize(
    ("cgroup", "limits"),
    [
        (CGROUPS, True),
        (CGROUPS.replace("yes", "YES"), True),
        (CGROUPS.replace("ConstrainCores", "constraincores"), True),
        ("CgroupPlugin=disabled\n", False),
        (CGROUPS.replace("autodetect", "Disabled"), False),
        (CGROUPS.replace("ConstrainRAMSpace=yes", ""), False),
        (CGROUPS.replace("ConstrainCores=yes", "ConstrainCores=no"), False),
    ],
)
def test_cgroups_limit_jobs(cgroup: str, *, limits: bool) -> None:
    assert paths(SLURM_SETTINGS, files(cgroup=cgroup)) == ([] if limits else ['files["cgroup.conf"]'])


@pytest.mark.parametrize(
    ("slurm", "safe"),
    [
        ("SlurmdTimeout=60", True),
        ("SlurmdTimeout=0", True),
        ("SlurmdTimeout=59", False),
        ("slurmdtimeout=5", False),
        ("PartitionName=main Nodes=cpu", True),
        ("PartitionName=main Nodes=cpu State=up", True),
        ("PartitionName=main Nodes=cpu State=DOWN", False),
        ("PartitionName=main Nodes=cpu state=drain", False),
        ("PartitionName=a Nodes=cpu State=UP\nPartitionName=b Nodes=cpu State=INACTIVE", False),
        ("no configuration", True),
    ],
)
def test_slurm_waits_for_silent_nodes_and_its_partitions_take_jobs(slurm: str, *, safe: bool) -> None:
    assert paths(SLURM_SETTINGS, files(slurm)) == ([] if safe else ['files["slurm.conf"]'])


def test_the_least_timeout_of_nodes_is_a_setting() -> None:
    assert paths(SLURM_SETTINGS, files("SlurmdTimeout=59"), minimum_slurmd_timeout=30) == []


@pytest.mark.parametrize(
    ("slurm", "cancels"),
    [
        ("PreemptMode=CANCEL", True),
        ("preemptmode=gang,cancel", True),
        (f"{PARTITION} PreemptMode=CANCEL", True),
        ("PreemptMode=REQUEUE", False),
        (f"{PARTITION} PreemptMode=OFF", False),
    ],
)
def test_a_job_of_higher_priority_cancels_none(slurm: str, *, cancels: bool) -> None:
    assert paths(CANCELLED_JOBS, files(slurm)) == (['files["slurm.conf"]'] if cancels else [])


def test_files_that_a_preview_does_not_know_are_named() -> None:
    unknown = files(UNKNOWN, UNKNOWN)
    assert paths(SLURM_SETTINGS, unknown, unknown=True) == ['files["slurm.conf"]', 'files["cgroup.conf"]']
    assert paths(CANCELLED_JOBS, unknown, unknown=True) == ['files["slurm.conf"]']


def munge(name: str = "munge-key", fingerprint: str | None = "a1") -> dict[str, Any]:
    return {"kind": "munge key", "secret": name, "key": "munge.key", "fingerprint": fingerprint}


@pytest.mark.parametrize(
    ("now", "safe"),
    [
        (munge(), True),
        (munge(fingerprint="b2"), True),
        (munge("mine"), True),
        (munge("mine", "b2"), False),
        (munge("mine", None), False),
    ],
)
def test_a_munge_key_moves_to_another_secret_before_it_changes(now: dict[str, Any], *, safe: bool) -> None:
    host = {"kind": "ssh host key", "secret": "host", "key": "key", "fingerprint": "c3"}
    keys = a_resource_of_ours("KeysInUse", keys=[host, now], keys_before=[munge()])
    assert paths(SLURM_SETTINGS, keys) == ([] if safe else ["keys"])
    assert paths(SLURM_SETTINGS, a_resource_of_ours("KeysInUse", keys=[now])) == [], "a new cluster"


@pytest.mark.parametrize(("seconds", "safe"), [(None, True), (30.0, True), (0.0, False), (29.0, False)])
def test_a_pod_of_a_cluster_has_time_to_end(seconds: float | None, *, safe: bool) -> None:
    spec = {"template": {"spec": {"terminationGracePeriodSeconds": seconds}}}
    other = an_object("apps/v1:StatefulSet", {"metadata": {"name": "cpu"}, "spec": spec}, "hpc-cpu")
    found = [] if safe else ["spec.template.spec.terminationGracePeriodSeconds"]
    assert paths(UNDRAINED_NODES, below("Controller", other)) == found
    assert paths(UNDRAINED_NODES, an_object("apps/v1:StatefulSetPatch", {"spec": spec})) == found
    assert paths(UNDRAINED_NODES, other) == [], "no cluster's"
