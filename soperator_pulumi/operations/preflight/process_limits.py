"""Processes that one user may have in a pod, compared with the kubelet's limit for a pod (`podPidsLimit`).

At the pod's limit no process starts in it, slurmd's included: a user who reaches it makes the node unusable for others.
"""

import re
from collections.abc import Iterator, Sequence

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, warned
from soperator_pulumi.operations.preflight.machine_fit import CHECK, MACHINES, machines_for
from soperator_pulumi.operations.preflight.machine_probe import kind_of
from soperator_pulumi.operations.preflight.planned import PlannedPods
from soperator_pulumi.spec.node_set import FEWEST_PROCESSES

RESERVED = 512
"""Process ids that are kept for slurmd, its steps, sidecars and other users' sessions. Judgement."""

_OF_USER = re.compile(r"(?:processes|--nproc)=(\d+)")
"""Option in the arguments of slurmd's and sshd's containers with a user's limit."""


def limit_findings(kube: Kube, every: Sequence[PlannedPods], machines: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield pods in which one user can use up all process ids.

    One machine of every kind is asked for its kubelet's configuration. Without the right to read that (`get` on
    `nodes/proxy`), there are no findings.

    Args:
        kube: The cluster.
        every: The kinds of pods.
        machines: All machines.
    """
    for pods in every:
        allowed = _of_user(pods)
        kinds = {kind_of(machine): machine for machine in machines_for(pods, machines)} if allowed else {}
        limits = [limit for machine in kinds.values() if (limit := _of_pod(kube, machine)) is not None]
        if limits and allowed + RESERVED > min(limits):
            most = min(limits) - RESERVED
            lower = f"Set {pods.place}.max_processes to {most}, or raise" if most >= FEWEST_PROCESSES else "Raise"
            yield warned(
                CHECK,
                f"{pods.place}.max_processes",
                f"a user may have {allowed} processes, and a pod {min(limits)}: one user can take the node from others",
                f"{RESERVED} processes of a pod that no user can have",
                f"{lower} the kubelet's podPidsLimit.",
            )


def _of_user(pods: PlannedPods) -> int:
    texts = [
        str(text) for container in pods.containers for key in ("command", "args") for text in container.get(key) or []
    ]
    return max((int(found[1]) for text in texts if (found := _OF_USER.fullmatch(text))), default=0)


def _of_pod(kube: Kube, machine: Json) -> int | None:
    """Return the limit of a pod on a machine; None if there is none, or without the right to read it."""
    try:
        answer = kube.get(f"{MACHINES}/{machine['metadata']['name']}/proxy/configz") or {}
    except KubernetesError:
        return None
    limit = (answer.get("kubeletconfig") or {}).get("podPidsLimit")
    return limit if isinstance(limit, int) and limit > 0 else None
