"""Waits after an object is made, changed or deleted, and their lengths: the rules of pulumi-kubernetes."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.conftest import Stack
from tests.waiting import wait_until
from tools.engine import StepOp

pytestmark = pytest.mark.engine

PAUSE = "localhost/soperator/pause:1"
"""The image of the embedded cluster's own pods: it does nothing for as long as it is let."""
SOON = {"create": "3s", "update": "3s"}


def container(image: str = PAUSE, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": image, "imagePullPolicy": "Never", **fields}


NEVER_READY = {"readinessProbe": {"exec": {"command": ["/none"]}, "periodSeconds": 1}}


def pod(app: str, **fields: Any) -> dict[str, Any]:
    spec = {"containers": [container(**fields)], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def workload(stack: Stack, kind: str, fields: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A Deployment, StatefulSet or DaemonSet of one pod."""
    options = spec.pop("options", {})
    metadata = spec.pop("metadata", {})
    if kind != "DaemonSet":
        spec = {"replicas": 1, **spec}
    body = {
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": pod("x", **(fields or {})),
            **({"serviceName": "x"} if kind == "StatefulSet" else {}),
            **spec,
        },
    }
    return stack.object("w", f"apps/v1:{kind}", body, **options)


WORKLOADS = pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])


def plural(kind: str) -> str:
    return f"{kind.lower()}s"


def ready_pods(stack: Stack) -> int:
    conditions = [pod["status"].get("conditions") or [] for pod in stack.pods()]
    return sum(any(c["type"] == "Ready" and c["status"] == "True" for c in found) for found in conditions)


def uids(stack: Stack) -> set[str]:
    return {pod["metadata"]["uid"] for pod in stack.pods()}


@WORKLOADS
def test_a_workload_is_waited_for_until_its_pods_are_ready(stack: Stack, kind: str) -> None:
    stack.up(workload(stack, kind))
    assert ready_pods(stack) == 1


@WORKLOADS
def test_a_workload_that_does_not_come_up_fails_the_run_and_is_in_the_state(stack: Stack, kind: str) -> None:
    absent = workload(stack, kind, {"image": "localhost/absent:1"}, options={"custom_timeouts": SOON})
    error = stack.fails(lambda: stack.up(absent, stack.thing("t", options={"depends_on": ["w"]})))
    assert {failure.name for failure in error.failures if failure.urn} == {"w"}
    assert stack.names() == {"w"}
    assert stack.log() == []


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
def test_the_next_up_continues_to_wait_for_a_workload(stack: Stack, kind: str) -> None:
    waits = workload(stack, kind, {"image": "localhost/absent:1"}, options={"custom_timeouts": SOON})
    stack.fails(lambda: stack.up(waits))
    assert stack.preview().names(StepOp.UPDATE) == {"w"}
    stack.up(workload(stack, kind))
    assert ready_pods(stack) == 1


@WORKLOADS
def test_no_one_waits_for_a_workload_that_says_so(stack: Stack, kind: str) -> None:
    skip = {"annotations": {"pulumi.com/skipAwait": "true"}}
    stack.up(workload(stack, kind, {"image": "localhost/absent:1"}, metadata=skip))
    assert ready_pods(stack) == 0
    assert stack.up().changed == ()


def test_an_annotation_says_how_long_to_wait(stack: Stack) -> None:
    hurried = {"annotations": {"pulumi.com/timeoutSeconds": "2"}}
    slow = workload(stack, "StatefulSet", {"image": "localhost/absent:1"}, metadata=hurried)
    stack.fails(lambda: stack.up(slow))  # the default, ten minutes, is longer than a test may take


@WORKLOADS
def test_an_update_waits_for_the_new_pods(stack: Stack, kind: str) -> None:
    stack.up(workload(stack, kind))
    error = stack.fails(lambda: stack.up(workload(stack, kind, NEVER_READY, options={"custom_timeouts": SOON})))
    assert [f.name for f in error.failures if f.urn] == ["w"]


def test_with_on_delete_an_update_of_a_stateful_set_waits_for_no_pod_to_be_replaced(stack: Stack) -> None:
    on_delete = {"updateStrategy": {"type": "OnDelete"}}
    stack.up(workload(stack, "StatefulSet", **on_delete))
    before = uids(stack)
    stack.up(workload(stack, "StatefulSet", {"image": "localhost/absent:1"}, **on_delete))
    assert uids(stack) == before


def test_with_on_delete_scaling_a_stateful_set_waits_for_the_new_pods(stack: Stack) -> None:
    on_delete: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}, "podManagementPolicy": "Parallel"}
    stack.up(workload(stack, "StatefulSet", **on_delete))
    stack.up(workload(stack, "StatefulSet", replicas=2, **on_delete))
    assert ready_pods(stack) == 2


@WORKLOADS
def test_a_workload_is_gone_with_its_pods_when_its_deletion_is_through(stack: Stack, kind: str) -> None:
    stack.up(workload(stack, kind), stack.thing("t"))
    stack.up(stack.thing("t"))
    assert stack.find(plural(kind), "w", "/apis/apps/v1") is None
    assert stack.pods() == []


def test_a_deletion_that_hangs_fails_in_time_and_says_what_holds_it(stack: Stack) -> None:
    held = stack.object(
        "m",
        "core/v1:ConfigMap",
        {"metadata": {"finalizers": ["tests.invalid/hold"]}},
        custom_timeouts={"delete": "2s"},
    )
    stack.up(held, stack.thing("t"))
    error = stack.fails(lambda: stack.up(stack.thing("t")))
    said = str(error) + "".join(stack.lines)
    assert "tests.invalid/hold" in said
    assert stack.names() == {"m", "t"}
    patch = '{"metadata": {"finalizers": null}}'
    stack.kubernetes.run("patch", "configmap", "m", "-n", stack.namespace, "-p", patch)
    stack.up(stack.thing("t"))
    assert stack.names() == {"t"}


def test_a_pod_is_waited_for(stack: Stack) -> None:
    stack.up(stack.object("p", "core/v1:Pod", pod("x")))
    assert ready_pods(stack) == 1


def test_a_job_is_waited_for_until_it_is_complete(stack: Stack) -> None:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container(command=["/absent"])]}}}
    job = stack.object("j", "batch/v1:Job", {"spec": {**spec, "backoffLimit": 0}})
    error = stack.fails(lambda: stack.up(job))
    assert "BackoffLimitExceeded" in str(error)
    assert stack.names() == {"j"}


def test_a_jobs_template_replaces_it(stack: Stack) -> None:
    def job(name: str) -> dict[str, Any]:
        template = {"spec": {"restartPolicy": "Never", "containers": [{**container(), "name": name}]}}
        metadata = {"annotations": {"pulumi.com/skipAwait": "true"}}
        return stack.object("j", "batch/v1:Job", {"spec": {"template": template}, "metadata": metadata})

    stack.up(job("c"))
    assert stack.preview(job("d")).names(StepOp.REPLACE) == {"j"}


def service(stack: Stack, **options: Any) -> Callable[..., dict[str, Any]]:
    def make(**spec: Any) -> dict[str, Any]:
        return stack.object("s", "core/v1:Service", {"spec": {"ports": [{"port": 80}], **spec}}, **options)

    return make


def test_a_headless_service_is_not_waited_for(stack: Stack) -> None:
    """Else it and the StatefulSet that needs its name would wait for each other (K6)."""
    waits = workload(stack, "Deployment", NEVER_READY, metadata={"annotations": {"pulumi.com/skipAwait": "true"}})
    stack.up(waits, service(stack, custom_timeouts=SOON)(clusterIP="None", selector={"app": "x"}))


@pytest.mark.parametrize("spec", [{"type": "ExternalName", "externalName": "a.invalid"}, {}], ids=["external", "plain"])
def test_a_service_that_selects_nothing_is_not_waited_for(stack: Stack, spec: dict[str, Any]) -> None:
    stack.up(service(stack, custom_timeouts=SOON)(**spec))


def test_a_service_waits_for_the_pods_that_it_selects(stack: Stack) -> None:
    skip = {"annotations": {"pulumi.com/skipAwait": "true"}}
    waits = workload(stack, "Deployment", NEVER_READY, metadata=skip)
    stack.up(waits)
    wait_until(lambda: any(p["status"]["phase"] == "Running" for p in stack.pods()), "the pod runs, and is not ready")
    made = service(stack, custom_timeouts={"create": "15s"})(selector={"app": "x"})
    stack.fails(lambda: stack.up(waits, made))
    assert stack.names() == {"w", "s"}


def test_a_load_balancer_waits_for_its_address(stack: Stack) -> None:
    error = stack.fails(lambda: stack.up(service(stack, custom_timeouts=SOON)(type="LoadBalancer")))
    assert "s" in [failure.name for failure in error.failures]
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    stack.kubernetes.run(
        "patch", "service", "s", "-n", stack.namespace, "--subresource=status", "-p", json.dumps(status)
    )
    stack.up()
    assert stack.up().changed == ()


def test_a_claim_is_waited_for_until_it_is_bound(stack: Stack) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    stack.up(stack.object("c", "core/v1:PersistentVolumeClaim", {"spec": spec}))
    found = stack.find("persistentvolumeclaims", "c")
    assert found is not None
    assert found["status"]["phase"] == "Bound"


def test_a_claim_that_waits_for_its_first_pod_is_not_waited_for(stack: Stack) -> None:
    storage_class = stack.object(
        "class",
        "storage.k8s.io/v1:StorageClass",
        {
            "metadata": {"namespace": None, "name": stack.namespace},
            "provisioner": "tests.invalid/none",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": {"from": "class.metadata.name"},
        "resources": {"requests": {"storage": "1Mi"}},
    }
    claim = stack.object("c", "core/v1:PersistentVolumeClaim", {"spec": spec}, custom_timeouts=SOON)
    stack.up(storage_class, claim)
    stack.deployer().destroy()


def test_a_namespace_is_gone_when_its_deletion_is_through(stack: Stack) -> None:
    name = f"{stack.namespace}-inner"
    namespace = stack.object("n", "core/v1:Namespace", {"metadata": {"namespace": None, "name": name}})
    inner = stack.object("m", "core/v1:ConfigMap", {"metadata": {"namespace": {"from": "n.metadata.name"}}})
    stack.up(namespace, inner)
    stack.deployer().destroy()
    assert name not in stack.kubernetes.run("get", "namespaces", "-o", "name")


def test_refresh_sees_that_a_workload_is_not_ready_any_more(stack: Stack) -> None:
    stack.up(workload(stack, "Deployment"))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "localhost/absent:1"}]}}}}
    stack.kubernetes.run("patch", "deployment", "w", "-n", stack.namespace, "-p", json.dumps(patch))
    stack.deployer().refresh()
    assert stack.preview().names(StepOp.UPDATE) == {"w"}


def test_what_takes_long_is_said_while_it_is_waited_for(local: Stack) -> None:
    slow = workload(
        local, "StatefulSet", {"image": "localhost/absent:1"}, options={"custom_timeouts": {"create": "14s"}}
    )
    local.fails(lambda: local.up(slow))
    said = "\n".join(local.lines)
    assert "0 of 1 pods are updated and ready" in said or "0 of 1 pods are ready" in said
    assert "pod w-0, container c: ErrImageNeverPull" in said
