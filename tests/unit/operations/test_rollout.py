"""Waiting for the pods of the controller and of the login nodes."""

from datetime import UTC, datetime

import pytest

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.kube.pods import STATE_LOST
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.rollout import Rollout
from tests.fakes.objects import NAMESPACE, PODS, STATEFUL_SETS, labels_of
from tests.fakes.small_world import SmallWorld

PATH = f"{STATEFUL_SETS}/login"
LOGIN = labels_of("login")


def a_stateful_set(replicas: int = 2, **status: object) -> Json:
    settled = {"observedGeneration": 3, "currentRevision": "a", "updateRevision": "a", "readyReplicas": replicas}
    return {"metadata": {"generation": 3}, "spec": {"replicas": replicas}, "status": {**settled, **status}}


@pytest.fixture
def world() -> SmallWorld:
    world = SmallWorld()
    world.objects[PATH] = a_stateful_set()
    return world


def rollout(world: SmallWorld) -> Rollout:
    return Rollout(world, NAMESPACE, "login", LOGIN, world.reported.append, world.clock)


def test_pods_that_are_new_and_ready_are_not_waited_for(world: SmallWorld) -> None:
    rollout(world).wait(600)
    assert world.reported == []


def test_none_are_wanted_when_the_spec_closes_the_door(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(replicas=0)
    assert rollout(world).missing() == []


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"readyReplicas": 1}, "login: 1 of 2 pods are ready"),
        ({"updateRevision": "b", "updatedReplicas": 1}, "login: 1 of 2 pods are ready"),
        ({"updateRevision": "b"}, "login: 0 of 2 pods are ready"),
    ],
    ids=["not ready", "half replaced", "not yet replaced"],
)
def test_pods_that_are_old_or_not_ready_are_missing(world: SmallWorld, status: Json, line: str) -> None:
    world.objects[PATH] = a_stateful_set(**status)
    assert rollout(world).missing(explained=False) == [line]


def test_a_status_about_an_older_specification_counts_for_nothing(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(observedGeneration=2)
    assert rollout(world).missing()


def test_a_stateful_set_that_is_gone_is_named(world: SmallWorld) -> None:
    del world.objects[PATH]
    assert rollout(world).missing() == ["login: there is no such StatefulSet"]


def test_each_pod_that_is_not_ready_says_why(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(readyReplicas=1)
    world.add_pod("login-0", "login")
    world.add_pod("login-1", "login", "no image")
    assert rollout(world).missing()[1:] == ["  login-1: sshd: ErrImagePull: not found"]


def test_the_wait_ends_when_they_are_ready(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(readyReplicas=0)
    world.clock.after(4, lambda: world.objects.update({PATH: a_stateful_set()}))
    rollout(world).wait(600)
    assert world.reported == ["login: 0 of 2 pods are ready, 600 s left"]
    assert 4 <= world.clock.time < 6


def test_the_wait_is_bounded_and_ends_with_the_reasons(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(readyReplicas=1)
    world.add_pod("login-1", "login", "unschedulable")
    with pytest.raises(NotReadyError, match=r"login-1: waits for a machine: 0/3 nodes .*\n.*run again"):
        rollout(world).wait(30)
    assert 30 <= world.clock.time < 32


def stops_by(world: SmallWorld, seconds: float) -> str:
    return datetime.fromtimestamp(world.clock.wall() + seconds, UTC).isoformat()


def test_a_pod_that_stops_for_longer_than_the_time_to_start_is_waited_for(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(readyReplicas=1)
    stopping = world.add_pod("login-1", "login")
    stopping["metadata"]["deletionTimestamp"] = stops_by(world, 100)
    world.clock.after(100, lambda: stopping["metadata"].pop("deletionTimestamp"))
    world.clock.after(115, lambda: world.objects.update({PATH: a_stateful_set()}))

    rollout(world).wait(30)

    assert 115 <= world.clock.time < 117


def test_a_pod_that_never_stops_is_given_up(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(readyReplicas=1)
    world.add_pod("login-1", "login")["metadata"]["deletionTimestamp"] = stops_by(world, 100)

    with pytest.raises(NotReadyError, match="1 of 2 pods are ready"):
        rollout(world).wait(30)

    assert 160 < world.clock.time < 202


def a_refusing_pod(world: SmallWorld, exit_code: int, revision: str) -> str:
    """Add a pod whose container ended with an exit code, and return its path."""
    pod = world.add_pod("login-1", "login", "crashed")
    pod["metadata"]["labels"]["controller-revision-hash"] = revision
    pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] = exit_code
    return f"{PODS}/login-1"


def test_a_wait_ends_soon_if_a_pod_refuses_a_state_that_was_lost(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(readyReplicas=1)
    path = a_refusing_pod(world, STATE_LOST, "a")
    with pytest.raises(NotReadyError, match=r"login-1: sshd: CrashLoopBackOff.*\n.*run again"):
        rollout(world).wait(600)
    assert world.clock.time < 15
    assert path in world.objects


def test_an_older_pod_that_refuses_a_lost_state_is_deleted_so_that_a_new_one_starts(world: SmallWorld) -> None:
    world.objects[PATH] = a_stateful_set(updateRevision="b")
    path = a_refusing_pod(world, STATE_LOST, "a")
    world.clock.after(20, lambda: world.objects.update({PATH: a_stateful_set()}))
    rollout(world).wait(600)
    assert path not in world.objects
    assert "login-1: is deleted, so that it starts from the newest template" in world.reported


@pytest.mark.parametrize(("exit_code", "status"), [(1, {}), (STATE_LOST, {"observedGeneration": 2})])
def test_a_pod_that_may_start_later_is_waited_for(world: SmallWorld, exit_code: int, status: Json) -> None:
    world.objects[PATH] = a_stateful_set(readyReplicas=1, **status)
    path = a_refusing_pod(world, exit_code, "a")
    world.clock.after(60, lambda: world.objects.update({PATH: a_stateful_set()}))
    rollout(world).wait(600)
    assert world.clock.time >= 60
    assert path in world.objects
