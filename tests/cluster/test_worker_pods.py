"""Worker pods that someone takes away behind Pulumi's back, and what Slurm and Kubernetes then disagree on.

The cluster of three workers is left as it was.
"""

import pytest

from tests.cluster.slurm import Slurm
from tests.cluster.workers import (
    UNTIL_DRAINED,
    drain,
    drained,
    ended_well,
    in_service,
    job_on,
    nodes,
    pods,
    said,
    set_size,
)
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = pytest.mark.cluster

ALL = {"cpu-0", "cpu-1", "cpu-2"}


def delete_pod(slurm: Slurm, name: str) -> str:
    """Delete a pod as a person does, and return its UID."""
    uid = str(pods(slurm)[name].metadata.uid)
    slurm.api.delete_namespaced_pod(name, slurm.namespace)
    return uid


def is_replaced(slurm: Slurm, name: str, uid: str) -> bool:
    """Say whether another pod is ready under a name."""
    pod = pods(slurm).get(name)
    conditions = pod.status.conditions or [] if pod and pod.metadata.uid != uid else []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def scale_by_hand(slurm: Slurm, replicas: int) -> None:
    """Scale the StatefulSet with kubectl, and wait until the pods are gone."""
    slurm.kubernetes.run("scale", "statefulset/cpu", f"--replicas={replicas}", "--namespace", slurm.namespace)
    wait_until(lambda: len(pods(slurm)) == replicas, "the pods are gone")


def test_deleted_pods_wait_for_their_jobs_and_only_an_admins_drain_outlives_them(workers: Slurm) -> None:
    workers.ssh("rm -f end")
    jobs = [job_on(workers, name, "until [ -e end ]; do sleep 0.2; done") for name in ("cpu-1", "cpu-2")]

    before = {name: delete_pod(workers, name) for name in ("cpu-1", "cpu-2")}
    wait_until(lambda: drained(workers).keys() == {"cpu-1", "cpu-2"}, "the nodes take no more jobs")
    drain(workers, ["cpu-2"], "bad memory")
    workers.ssh("touch end")
    wait_until(lambda: all(is_replaced(workers, *pod) for pod in before.items()), "other pods are ready")

    assert all(ended_well(workers, job) for job in jobs)
    assert {name: node.reason for name, node in drained(workers).items()} == {"cpu-2": "bad memory"}
    assert workers.ssh("srun -w cpu-1 hostname").stdout == "cpu-1\n"


def test_scaled_by_hand_the_job_ends_first_and_up_says_how_to_bring_the_pods_back(workers: Slurm) -> None:
    job = job_on(workers, "cpu-2", UNTIL_DRAINED)

    scale_by_hand(workers, 2)
    with pytest.raises(DeployError, match="--refresh"):
        workers.up()
    workers.deployer().refresh()
    workers.up()

    assert ended_well(workers, job)
    assert in_service(workers) == ALL
    assert workers.deployer().up().changed == ()


def test_a_node_without_a_pod_is_shown_and_cleaned_up(workers: Slurm) -> None:
    scale_by_hand(workers, 2)
    assert "cpu-2" in nodes(workers)
    set_size(workers, 2)
    workers.deployer().refresh()

    shown = said(workers.deployer().preview())
    workers.up()

    assert "cpu-2: in Slurm without a pod" in shown
    assert set(nodes(workers)) == {"cpu-0", "cpu-1"}
    assert workers.deployer().up().changed == ()


def test_a_pod_without_a_node_is_shown_until_it_is_replaced(
    workers: Slurm,
) -> None:
    workers.scontrol("delete", "nodename=cpu-1")

    shown = said(workers.deployer().preview())
    before = delete_pod(workers, "cpu-1")
    wait_until(lambda: is_replaced(workers, "cpu-1", before), "another pod is ready")

    assert "cpu: 2 of 3 nodes have joined" in shown
    assert "cpu-1" in shown
    assert {name: node.reason.partition(": ")[2] for name, node in drained(workers).items()} == {"cpu-1": "pod-start"}

    workers.up()

    assert in_service(workers) == ALL
