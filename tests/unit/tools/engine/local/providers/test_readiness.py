"""When objects are ready: pulumi-kubernetes' rules, on objects as the API server has them."""

from typing import Any

import pytest

from tools.engine.local.providers import readiness
from tools.engine.local.providers.readiness import Evidence, Readiness

Object = dict[str, Any]
NONE = Evidence()


def a_set(generation: int = 1, strategy: str = "RollingUpdate", replicas: int = 2, **status: Any) -> Object:
    status = {
        "observedGeneration": generation, "replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2,
        "currentRevision": "r1", "updateRevision": "r1", **status,
    }  # fmt: skip
    spec = {"replicas": replicas, "updateStrategy": {"type": strategy}}
    return {"metadata": {"generation": generation}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("obj", "ready"),
    [
        (a_set(), True),
        (a_set(readyReplicas=1), False),
        (a_set(replicas=3), False),
        (a_set(observedGeneration=0), False),
        (a_set(updateRevision="r2", currentReplicas=0), False),
        (a_set(generation=2, strategy="OnDelete", updateRevision="r2", currentReplicas=0), True),
        (a_set(generation=2, strategy="OnDelete", readyReplicas=1), False),
        (a_set(generation=1, strategy="OnDelete", updateRevision="r2"), False),
        (a_set(replicas=0, readyReplicas=0, currentReplicas=0) | {"status": {"observedGeneration": 1}}, False),
    ],
)
def test_a_stateful_set_is_ready(obj: Object, ready: bool) -> None:
    assert readiness.stateful_set(obj, NONE).ready is ready


def a_deployment(revision: str = "1", **conditions: str) -> Object:
    return {
        "metadata": {
            "uid": "d",
            "generation": 1,
            "annotations": {"deployment.kubernetes.io/revision": revision},
        },
        "status": {
            "observedGeneration": 1,
            "conditions": [
                {"type": kind, "status": status, "reason": "NewReplicaSetAvailable"}
                for kind, status in {"Available": "True", "Progressing": "True", **conditions}.items()
            ],
        },
    }


def a_replica_set(revision: str = "1", owner: str = "d", ready: int = 1) -> Object:
    return {
        "kind": "ReplicaSet",
        "metadata": {
            "annotations": {"deployment.kubernetes.io/revision": revision},
            "ownerReferences": [{"uid": owner}],
        },
        "spec": {"replicas": 1},
        "status": {"readyReplicas": ready},
    }


@pytest.mark.parametrize(
    ("obj", "related", "ready"),
    [
        (a_deployment(), [a_replica_set()], True),
        (a_deployment(), [], False),
        (a_deployment(), [a_replica_set(owner="another")], False),
        (a_deployment(), [a_replica_set(ready=0)], False),
        (a_deployment("2"), [a_replica_set("1")], False),
        (a_deployment("2"), [a_replica_set("1", ready=0), a_replica_set("2")], True),
        (a_deployment("2", Progressing="False"), [a_replica_set("2")], False),
        (a_deployment("1", Progressing="False"), [a_replica_set()], True),
        (a_deployment(Available="False"), [a_replica_set()], False),
        (
            a_deployment(),
            [
                a_replica_set(),
                {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "status": {"phase": "Pending"}},
            ],
            False,
        ),
    ],
)
def test_a_deployment_is_ready(obj: Object, related: list[Object], ready: bool) -> None:
    assert readiness.deployment(obj, Evidence(related=related)).ready is ready


@pytest.mark.parametrize(("available", "ready"), [(2, True), (1, False)])
def test_a_daemon_set_is_ready(available: int, ready: bool) -> None:
    counts = dict.fromkeys(("currentNumberScheduled", "updatedNumberScheduled", "numberReady"), 2)
    status = {"observedGeneration": 1, "desiredNumberScheduled": 2, "numberAvailable": available, **counts}
    assert readiness.daemon_set({"metadata": {"generation": 1}, "status": status}, NONE).ready is ready


def conditions(**states: str) -> Object:
    return {"conditions": [{"type": kind, "status": status} for kind, status in states.items()]}


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, False),
        (conditions(PodScheduled="True", Initialized="True", Ready="True"), True),
        (conditions(PodScheduled="True", Initialized="True", Ready="False"), False),
        ({"phase": "Succeeded"}, True),
    ],
)
def test_a_pod_is_ready(status: Object, ready: bool) -> None:
    assert readiness.pod({"status": status}, NONE).ready is ready


def test_a_job_is_ready_when_complete_and_failed_for_good_when_it_has_used_up_its_tries() -> None:
    assert readiness.job({"status": {"startTime": "t", **conditions(Complete="True")}}, NONE).ready
    assert readiness.job({"status": {"active": 1}}, NONE) == Readiness(
        False, "its pods: 1 active, 0 succeeded, 0 failed"
    )
    failed = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "enough"}]
    assert readiness.job({"status": {"conditions": failed}}, NONE) == Readiness(
        False, "BackoffLimitExceeded: enough", failed=True
    )


SELECTS = {"selector": {"app": "x"}}
ENDPOINTS: Object = {"subsets": [{"addresses": [{"ip": "1"}]}]}
WAITING: Object = {"subsets": [{"notReadyAddresses": [{"ip": "1"}]}]}


@pytest.mark.parametrize(
    ("spec", "related", "quiet", "ready"),
    [
        ({}, [], 0.0, True),
        ({**SELECTS, "clusterIP": "None"}, [], 0.0, True),
        ({**SELECTS, "type": "ExternalName"}, [], 0.0, True),
        (SELECTS, [], 99.0, False),
        (SELECTS, [ENDPOINTS], 1.0, False),
        (SELECTS, [ENDPOINTS], 10.0, True),
        (SELECTS, [{}], 10.0, True),
        (SELECTS, [WAITING], 99.0, False),
        ({"type": "LoadBalancer"}, [], 99.0, False),
    ],
)
def test_a_service_is_ready(spec: Object, related: list[Object], quiet: float, ready: bool) -> None:
    around = Evidence(related=related, quiet_seconds=quiet)
    assert readiness.service({"spec": spec}, around).ready is ready


def test_a_load_balancer_is_ready_with_an_address() -> None:
    obj = {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "1"}]}}}
    assert readiness.service(obj, NONE).ready


@pytest.mark.parametrize(
    ("phase", "mode", "ready"),
    [
        ("Bound", "Immediate", True),
        ("Pending", "Immediate", False),
        ("Pending", "WaitForFirstConsumer", True),
        ("Lost", "WaitForFirstConsumer", False),
    ],
)
def test_a_claim_is_ready(phase: str, mode: str, ready: bool) -> None:
    around = Evidence(related=[{"volumeBindingMode": mode}])
    assert readiness.claim({"status": {"phase": phase}}, around).ready is ready


def test_a_secret_waits_only_for_a_service_accounts_token() -> None:
    token = {"type": "kubernetes.io/service-account-token"}
    assert readiness.secret({"type": "Opaque"}, NONE).ready
    assert not readiness.secret(token, NONE).ready
    assert readiness.secret({**token, "data": {"token": "x"}}, NONE).ready


def test_a_volume_and_a_quota_are_ready_when_their_controllers_say_so() -> None:
    assert readiness.volume({"status": {"phase": "Available"}}, NONE).ready
    assert not readiness.volume({}, NONE).ready
    quota: Object = {"spec": {"hard": {"pods": "1"}}}
    assert not readiness.quota(quota, NONE).ready
    assert readiness.quota({**quota, "status": {"hard": {"pods": "1"}}}, NONE).ready
