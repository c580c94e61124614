"""Pods as the API server shows them."""

from soperator_pulumi.kube.verbs import Json
from tests.fakes.objects import NAMESPACE, labels_of


def a_pod(
    name: str,
    component: str,
    container: str,
    state: str = "running",
    *,
    ready: bool | None = None,
    node_set: str | None = None,
    **metadata: object,
) -> Json:
    """Return a pod; it is ready where its container runs, if nothing else is given."""
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels_of(component, node_set), **metadata},
        "spec": {"containers": [{"name": container}], "volumes": []},
        "status": status_of(container, state, ready=state == "running" if ready is None else ready),
    }


def status_of(container: str, state: str, *, ready: bool) -> Json:
    """Return the status of a pod whose container is `running`, `creating`, `crashed`, or without image or machine."""
    ended = {"terminated": {"exitCode": 1}}
    states: dict[str, tuple[Json, Json]] = {
        "running": ({"running": {}}, {}),
        "restarted": ({"running": {}}, ended),
        "creating": ({"waiting": {"reason": "ContainerCreating"}}, {}),
        "crashed": ({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, ended),
        "no image": ({"waiting": {"reason": "ErrImagePull", "message": "not found"}}, {}),
    }
    fits: Json = {"type": "PodScheduled", "status": str(state in states)}
    if state == "unschedulable":
        fits["message"] = "0/3 nodes are available: 3 Insufficient cpu."
    now, before = states.get(state, ({}, {}))
    status = {"name": container, "state": now, "lastState": before, "ready": ready}
    return {
        "phase": "Running" if "running" in now else "Pending",
        "conditions": [fits, {"type": "Ready", "status": str(ready)}],
        "containerStatuses": [status] if now else [],
    }
