"""CPU layouts that node sets declare, compared with the machines on which their pods may run."""

import re
from collections.abc import Iterator, Sequence

from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, warned
from soperator_pulumi.operations.preflight.machine_fit import CHECK, has_room, machines_for
from soperator_pulumi.operations.preflight.planned import PlannedPods
from soperator_pulumi.spec.node_set import CpuLayout
from soperator_pulumi.spec.types.quantity import amount

_REGISTERED = re.compile(r"conf=.* Sockets=(\d+) CoresPerSocket=(\d+) ThreadsPerCore=(\d+) ")
"""Argument of the worker's start with the record of a node (`render/slurm_conf.py`)."""


def layout_findings(every: Sequence[PlannedPods], machines: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield layouts that a machine cannot have, judged by its number of CPUs.

    A machine may have more threads in a core than are declared. Kubernetes reports neither sockets nor cores. Machines
    that are too small for the pods, or lack their devices, are not judged.

    Args:
        every: The kinds of pods.
        machines: All machines.
    """
    for pods in every:
        layout = _layout(pods)
        if layout is None:
            continue
        there = [machine for machine in machines_for(pods, machines) if has_room(pods, machine)]
        cpus = {machine["metadata"]["name"]: _cpus(machine) for machine in there}
        others = {name: number for name, number in sorted(cpus.items()) if number and not _can_have(layout, number)}
        if others:
            (name, number), (sockets, cores, threads) = next(iter(others.items())), layout
            yield warned(
                CHECK,
                f"{pods.place}.sockets",
                f"{len(others)} of {len(cpus)} machines cannot have {sockets} sockets of {cores} cores of {threads} "
                f"threads: {name} has {number} CPUs, and Slurm would bind tasks to the wrong ones",
                "sockets, cores_per_socket, and threads_per_core as `lscpu` prints them on the machines",
                f"Correct them in {pods.place}, or choose other machines by its node_selector.",
            )


def _layout(pods: PlannedPods) -> CpuLayout | None:
    words = (str(word) for container in pods.containers for word in container.get("command") or [])
    found = next((match for word in words if (match := _REGISTERED.match(word))), None)
    return CpuLayout(*map(int, found.groups())) if found else None


def _cpus(machine: Json) -> int:
    """Return the CPUs of a machine, including those reserved for the kubelet and daemons; 0 if unknown."""
    return int(amount(str((machine.get("status", {}).get("capacity") or {}).get("cpu", "0"))))


def _can_have(layout: CpuLayout, cpus: int) -> bool:
    threads, rest = divmod(cpus, layout.sockets * layout.cores_per_socket)
    return not rest and threads >= layout.threads_per_core
