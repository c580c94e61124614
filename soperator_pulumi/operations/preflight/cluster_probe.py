"""Probes: pods that test something in the cluster, and the judgement of their answers."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis
from soperator_pulumi.operations.preflight.probe_place import LIFE_SECONDS

Judge = Callable[[Mapping[str, Pod]], Iterable[Diagnosis]]
"""Function that judges the final states of pods, by name."""


@dataclass(frozen=True)
class ClusterProbe:
    """Objects to create, pods to wait for, and the judgement of their results."""

    check: str
    place: str
    """Place of a finding about the probe itself."""
    objects: Sequence[Json]
    awaited: Sequence[str]
    """Names of the pods that end by themselves."""
    judge: Judge


def probe_pod(name: str, containers: Sequence[Json], like: Json, machine: str | None = None) -> Json:
    """Return a pod of a probe.

    It requests nothing, so that even a machine full of workers accepts it, and it tolerates every taint: another check
    judges which machines fit.

    Args:
        name: Name of the pod.
        containers: Containers of the pod.
        like: Specification of the planned pods, for pull secrets and the runtime class.
        machine: Machine that it must run on; None for any that the scheduler chooses.
    """
    kept = {key: like[key] for key in ("imagePullSecrets", "runtimeClassName") if like.get(key)}
    rule = {"key": "metadata.name", "operator": "In", "values": [machine]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [rule]}]}}
    spec = {
        **kept,
        "containers": [*containers],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LIFE_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": [{"operator": "Exists"}],
        **({"affinity": {"nodeAffinity": terms}} if machine else {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def harmless() -> Json:
    """Return the security context of a probe that needs no rights."""
    return {
        "runAsUser": 65534,
        "runAsGroup": 65534,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def answer_of(pod: Pod | None) -> str | None:
    """Return the answer that a pod's program wrote as its termination message; None if there is none."""
    for status in (pod.body.get("status", {}).get("containerStatuses") or []) if pod else []:
        ended = status.get("state", {}).get("terminated") or {}
        if ended.get("message"):
            return str(ended["message"])
    return None


def json_answer_of(pod: Pod | None) -> Json | None:
    """Return the answer of a pod's program that writes a JSON object; None if there is none, or it is cut off."""
    text = answer_of(pod)
    try:
        return None if text is None else dict(json.loads(text))
    except ValueError:
        return None
