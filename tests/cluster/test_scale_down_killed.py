"""A scale-down that is killed or interrupted: the next `up` goes on or undoes, and no job is lost.

The cluster of three workers is left as it was.
"""

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from kubernetes.client import AppsV1Api
from kubernetes.client.exceptions import ApiException

from tests.cluster.slurm import Slurm
from tests.cluster.workers import (
    UNTIL_DRAINED,
    drained,
    ended_well,
    in_service,
    job_on,
    kill,
    nodes,
    resume,
    scale,
    set_size,
    started_up,
)
from tests.soak import times
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

LONGEST_SECONDS = 14.0
"""A scale-down that waits for the job below takes about so long."""

KILLS = times(1, 20)
MOMENTS = [random.Random(f"scale-down {number}").uniform(1, LONGEST_SECONDS) for number in range(KILLS)]  # noqa: S311


@pytest.mark.parametrize("seconds", MOMENTS)
def test_killed_at_any_moment_and_run_again_it_converges_and_no_job_is_lost(workers: Slurm, seconds: float) -> None:
    job = job_on(workers, "cpu-2", UNTIL_DRAINED)
    set_size(workers, 1)
    with started_up(workers) as up, suppress(subprocess.TimeoutExpired):
        up.communicate(timeout=seconds)

    workers.up()

    assert ended_well(workers, job)
    assert set(nodes(workers)) == {"cpu-0"}
    assert in_service(workers) == {"cpu-0"}
    assert workers.deployer().up().changed == ()


@contextmanager
def kept_from_shrinking(slurm: Slurm) -> Iterator[None]:
    """Have the API server refuse to lower the replicas of StatefulSets in the cluster's namespace."""
    apps, name = AppsV1Api(slurm.kubernetes.api), f"keep-{slurm.namespace}"
    space = {"matchLabels": {"kubernetes.io/metadata.name": slurm.namespace}}
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["statefulsets"], "operations": ["UPDATE"]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    policy = kind | {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"namespaceSelector": space, "resourceRules": [rule]},
            "validations": [{"expression": "object.spec.replicas >= oldObject.spec.replicas"}],
        },
    }
    binding = kind | {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [policy, binding]})

    def refuses() -> bool:
        try:
            apps.patch_namespaced_stateful_set("cpu", slurm.namespace, {"spec": {"replicas": 0}}, dry_run="All")
        except ApiException as error:
            return error.status in {403, 422}
        return False

    slurm.kubernetes.run("apply", "-f", "-", stdin=listed)
    try:
        wait_until(refuses, "the API server refuses to take pods away")
        yield
    finally:
        slurm.kubernetes.run("delete", "-f", "-", stdin=listed)
    wait_until(lambda: not refuses(), "the API server takes pods away again")


def test_killed_after_the_drain_and_resumed_by_an_admin_the_nodes_are_drained_again(workers: Slurm) -> None:
    set_size(workers, 1)
    with kept_from_shrinking(workers), started_up(workers) as up:
        assert up.stderr
        assert any("NodeDrain" in line and "updated" in line for line in up.stderr)
        kill(up)
    assert set(drained(workers)) == {"cpu-1", "cpu-2"}
    resume(workers, ["cpu-1", "cpu-2"])
    job = job_on(workers, "cpu-2", UNTIL_DRAINED)

    workers.up()

    assert ended_well(workers, job)
    assert set(nodes(workers)) == {"cpu-0"}


def press_ctrl_c(up: subprocess.Popen[str]) -> str:
    """Interrupt an engine as a terminal does, once more every few seconds until it has ended; return what it said."""
    for _ in range(6):
        os.killpg(up.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return up.communicate(timeout=10)[1]
    raise AssertionError("it does not end")


def test_after_ctrl_c_the_drains_stay_until_it_is_run_again_or_replicas_are_taken_back(workers: Slurm) -> None:
    job = job_on(workers, "cpu-2")
    set_size(workers, 1)
    with started_up(workers) as up:
        wait_until(lambda: set(drained(workers)) == {"cpu-1", "cpu-2"}, "the nodes are drained")
        said = press_ctrl_c(up)
    left = set(drained(workers))
    scale(workers, 3)

    assert "If interrupted, the drains stay: pulumi up continues; with replicas: 3 of cpu it undoes them." in said
    assert left == {"cpu-1", "cpu-2"}
    assert in_service(workers) == {"cpu-0", "cpu-1", "cpu-2"}
    assert workers.job(job)["JobState"] == "RUNNING"
    assert workers.deployer().up().changed == ()
