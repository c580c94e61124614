"""Machines that fit planned pods: allocatable resources, layouts of CPUs, and limits of processes.

Of running pods, only those of DaemonSets count: a finding is about what the machines can hold, not about what is free
now, and these pods are always there.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import NamedTuple

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.admitting_machines import (
    MACHINES,
    is_chosen,
    kind_of,
    machines_for,
    repelling,
    usable,
)
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned
from soperator_pulumi.operations.preflight.planned import WORKER, PlannedPods
from soperator_pulumi.spec.node_set import FEWEST_PROCESSES, CpuLayout
from soperator_pulumi.spec.types.quantity import GIB, amount
from soperator_pulumi.wording import counted, listed

CHECK = "machines"

DAEMON_SETS = "/apis/apps/v1/daemonsets"

_FEW = 3

_PARTS_OF_GIB = 8
"""Fractions of a GiB to which suggested memory is rounded down."""

_Resources = Mapping[str, Decimal]

_REGISTERED = re.compile(r"conf=.* Sockets=(\d+) CoresPerSocket=(\d+) ThreadsPerCore=(\d+) ")
"""Argument of the worker's start with the record of a node (`render/slurm_conf.py`)."""

_RESERVED_PROCESSES = 512
"""Process ids that are kept for slurmd, its steps, sidecars and other users' sessions. Judgement."""

_PROCESSES = re.compile(r"(?:processes|--nproc)=(\d+)")
"""Argument of slurmd's and sshd's containers that limits the processes of a user."""


def has_room(pods: PlannedPods, machine: Json) -> bool:
    """Return True if an otherwise empty machine holds one of these pods, with its devices."""
    return _room(pods.requests, _left(machine, ())) > 0


def fit_findings(
    every: Sequence[PlannedPods],
    machines: Sequence[Json],
    *,
    daemon_sets: Sequence[Json] = (),
    to_come: Sequence[str] = (),
) -> Iterator[Diagnosis]:
    """Yield a finding for every kind of pod: whether the machines can hold them.

    Args:
        every: The kinds of pods.
        machines: All machines.
        daemon_sets: DaemonSets, whose pods take their requests from every machine that they choose. Default: none.
        to_come: Resources of device plugins that the program installs, `*` in one for any text. One of them that is
            missing is a warning.
    """
    left = _left_on(machines, daemon_sets)
    for pods in every:
        if pods.replicas:
            yield _fit(pods, machines, left, to_come)


class Room(NamedTuple):
    """Size for which every machine has room that its pods may run on."""

    cpus: int
    gib: float
    machines: int
    """Number of these machines."""
    fewest_cpus: str
    """Name of the machine that decides `cpus`."""
    least_memory: str
    """Name of the machine that decides `gib`."""


def least_room(pods: PlannedPods, machines: Sequence[Json], daemon_sets: Sequence[Json]) -> Room | Diagnosis:
    """Return the size of the main container for which all machines of the pods have room, whatever it requests now.

    These are the machines that admit the pods and have their devices. If there are none, return why.

    Args:
        pods: The pods.
        machines: All machines.
        daemon_sets: All DaemonSets, whose pods take their requests from every machine that they choose.
    """
    left, rest = _left_on(machines, daemon_sets), pods.without_size()
    names = (machine["metadata"]["name"] for machine in machines_for(pods, machines))
    sizes = {name: _largest(rest, left[name]) for name in names if _room(rest.requests, left[name])}
    if not sizes:
        return _fit(rest, machines, left, ())
    cpus, fewest = min((size[0], name) for name, size in sizes.items())
    gib, least = min((size[1], name) for name, size in sizes.items())
    return Room(cpus, gib, len(sizes), fewest, least)


def _left_on(machines: Sequence[Json], daemon_sets: Sequence[Json]) -> dict[str, _Resources]:
    """Return what every machine has for pods, without those of DaemonSets, by its name."""
    daemons = [PlannedPods(body["metadata"]["name"], "", 1, body["spec"]["template"]) for body in daemon_sets]
    return {machine["metadata"]["name"]: _left(machine, daemons) for machine in machines}


def _fit(
    pods: PlannedPods, machines: Sequence[Json], left: Mapping[str, _Resources], to_come: Sequence[str]
) -> Diagnosis:
    chosen = [machine for machine in machines if is_chosen(pods.spec, machine)]
    up = usable(chosen)
    if not chosen:
        return _not_chosen(pods, machines)
    if not up:
        names = listed(sorted(machine["metadata"]["name"] for machine in chosen), _FEW)
        text = f"none of the {len(chosen)} machines of its labels takes pods: {names} not ready, or cordoned"
        return refused(CHECK, pods.place, text, "a machine that is ready", "Uncordon or repair one.")
    taints = {_taint(entry) for machine in up for entry in repelling(pods.spec, machine)}
    admitted = [entry for entry in up if not repelling(pods.spec, entry)]
    if not admitted:
        found = counted(len(up), "machine")
        text = f"{found} of its labels, all with taints that its pods do not tolerate: {listed(sorted(taints), _FEW)}"
        cure = f"Add them to {pods.place}.tolerations, or remove them: kubectl taint node NAME KEY-"
        return refused(CHECK, pods.place, text, "a machine without such a taint", cure)
    there = {name: left[name] for name in (machine["metadata"]["name"] for machine in admitted)}
    room = {name: _room(pods.requests, resources) for name, resources in there.items()}
    if not any(room.values()):
        return _too_large(pods, there, to_come)
    if sum(room.values()) < pods.replicas:
        text = f"{counted(len(admitted), 'machine')} with room for {sum(room.values())} of its {pods.replicas} pods"
        cure = "Add machines, unless an autoscaler adds them, or lower replicas."
        return warned(CHECK, pods.place, text, f"room for {pods.replicas}", cure)
    fitting = [there[name] for name, number in room.items() if number]
    text = f"{len(fitting)} of {len(machines)} machines fit"
    if pods.component == WORKER:
        sizes = [_largest(pods, resources) for resources in fitting]
        cpus, gib = min(size[0] for size in sizes), math.floor(min(size[1] for size in sizes))
        text += f", with room for {counted(cpus, 'CPU')} and {gib} GiB" if cpus and gib else ""
    return passed(CHECK, pods.place, text)


def _room(requests: _Resources, there: _Resources) -> int:
    """Return the number of pods that an otherwise empty machine holds."""
    wanted = {**requests, "pods": Decimal(1)}
    return min(int(there.get(name, Decimal(0)) // value) for name, value in wanted.items() if value)


def _left(machine: Json, daemons: Sequence[PlannedPods]) -> dict[str, Decimal]:
    """Return the allocatable resources of a machine without those of its DaemonSets' pods."""
    found = machine.get("status", {}).get("allocatable") or {}
    left = {name: amount(str(value)) for name, value in found.items()}
    for daemon in daemons:
        if is_chosen(daemon.spec, machine) and not repelling(daemon.spec, machine):
            for name, value in {**daemon.requests, "pods": Decimal(1)}.items():
                left[name] = max(Decimal(0), left.get(name, Decimal(0)) - value)
    return left


def _not_chosen(pods: PlannedPods, machines: Sequence[Json]) -> Diagnosis:
    wanted = pods.spec.get("nodeSelector") or {}
    labels = [f"{key}={value}" for key, value in wanted.items()]
    there = {
        f"{key}={value}"
        for machine in machines
        for key, value in (machine["metadata"].get("labels") or {}).items()
        if key in wanted
    }
    rule = f"the label {', '.join(labels)}" if labels else "the labels of its affinity"
    near = f"; there are {listed(sorted(there), _FEW)}" if there else ""
    cure = f"Label a machine, or change {pods.place}.{'node_selector' if labels else 'affinity'}."
    return refused(CHECK, pods.place, f"none of {len(machines)} machines has {rule}{near}", "a machine with it", cure)


def _too_large(pods: PlannedPods, there: Mapping[str, _Resources], to_come: Sequence[str]) -> Diagnosis:
    most = {
        name: max(resources.get(name, Decimal(0)) for resources in there.values()) for name in (*pods.requests, "pods")
    }
    short = [name for name, value in pods.requests.items() if most[name] < value]
    found = ", ".join(f"{shown(name, most[name])} of {shown(name, pods.requests[name])} {name}" for name in short)
    text = f"no machine can allocate a pod: the largest has {found}" if short else "no machine has all of a pod's needs"
    resources = [name for name in short if "/" in name]
    missing = [name for name in resources if not any(fnmatchcase(name, pattern) for pattern in to_come)]
    if resources:
        plugins = ", ".join(missing or resources)
        cure = f"Install the device plugin of {plugins}, change the count, or stop what else takes them."
    elif short and not {"cpu", "memory"} & {*short}:
        cure = f"Request less {', '.join(short)}, or choose larger machines."
    else:
        cure = _smaller(pods, there)
    needed = ", ".join(f"{shown(name, value)} {name}" for name, value in pods.requests.items())
    if resources and len(resources) == len(short) and not missing:
        return warned(
            CHECK, pods.place, text, f"{needed} on one machine", "The program installs the part that lists them."
        )
    return refused(CHECK, pods.place, text, f"{needed} on one machine", cure)


def _smaller(pods: PlannedPods, there: Mapping[str, _Resources]) -> str:
    """Return the advice to request an amount that fits on the largest machine, next to the pod's other containers."""
    devices = {name: value for name, value in pods.requests.items() if name not in {"cpu", "memory"}}
    fitting = {name: left for name, left in there.items() if _room(devices, left)} or there
    name, left = max(fitting.items(), key=lambda item: (item[1].get("cpu", 0), item[1].get("memory", 0)))
    cpus, gib = _largest(pods, left)
    if cpus < 1 or gib <= 0:
        return "Choose larger machines."
    size = f"at most {counted(cpus, 'CPU')} and {gib:g} GiB, which fit machine {name}"
    how = f"set {pods.place}.pod_resources"
    if pods.component == WORKER:
        how = f"in {pods.place}, lower cpus and memory_gib, or keep them and set pod_resources"
    return f"Request {size}: {how}. Or choose larger machines."


def _largest(pods: PlannedPods, left: _Resources) -> tuple[int, float]:
    """Return the most CPUs and GiB that a machine has for a pod's main container, next to its other containers."""
    cpus, memory = (
        left.get(key, Decimal(0)) - pods.requests.get(key, Decimal(0)) + pods.main_requests.get(key, Decimal(0))
        for key in ("cpu", "memory")
    )
    return int(cpus), math.floor(memory * _PARTS_OF_GIB / GIB) / _PARTS_OF_GIB


def shown(resource: str, value: Decimal) -> str:
    """Return an amount for a message, with memory in GiB."""
    if resource == "memory" or resource.startswith(("ephemeral-storage", "hugepages-")):
        return f"{float(value) / GIB:.4g} GiB"
    return f"{float(value):.6g}"


def _taint(taint: Json) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


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
        capacities = {machine["metadata"]["name"]: machine.get("status", {}).get("capacity") or {} for machine in there}
        cpus = {name: int(amount(str(capacity.get("cpu", "0")))) for name, capacity in capacities.items()}
        others = {name: number for name, number in sorted(cpus.items()) if number and not _can_have(layout, number)}
        if others:
            (name, number), (sockets, cores, threads) = next(iter(others.items())), layout
            declared = f"{counted(sockets, 'socket')} of {counted(cores, 'core')} of {counted(threads, 'thread')}"
            yield warned(
                CHECK,
                f"{pods.place}.sockets",
                f"{len(others)} of {len(cpus)} machines cannot have {declared}: {name} has {counted(number, 'CPU')}, "
                "and Slurm would bind tasks to the wrong ones",
                "sockets, cores_per_socket, and threads_per_core as `lscpu` prints them on the machines",
                f"Correct them in {pods.place}, or choose other machines by its node_selector.",
            )


def _layout(pods: PlannedPods) -> CpuLayout | None:
    words = (str(word) for container in pods.containers for word in container.get("command") or [])
    found = next((match for word in words if (match := _REGISTERED.match(word))), None)
    return CpuLayout(*map(int, found.groups())) if found else None


def _can_have(layout: CpuLayout, cpus: int) -> bool:
    threads, rest = divmod(cpus, layout.sockets * layout.cores_per_socket)
    return not rest and threads >= layout.threads_per_core


def limit_findings(kube: Kube, every: Sequence[PlannedPods], machines: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield pods in which one user can use up all process ids, by the kubelet's limit for a pod (`podPidsLimit`).

    At the pod's limit no process starts in it, slurmd's included: the user makes the node unusable for others.

    One machine of every kind is asked for its kubelet's configuration. Without the right to read that (`get` on
    `nodes/proxy`), there are no findings.

    Args:
        kube: The cluster.
        every: The kinds of pods.
        machines: All machines.
    """
    for pods in every:
        allowed = _processes_of_user(pods)
        kinds = {kind_of(machine): machine for machine in machines_for(pods, machines)} if allowed else {}
        limits = [limit for machine in kinds.values() if (limit := _processes_of_pod(kube, machine)) is not None]
        if limits and allowed + _RESERVED_PROCESSES > min(limits):
            most = min(limits) - _RESERVED_PROCESSES
            lower = f"Set {pods.place}.max_processes to {most}, or raise" if most >= FEWEST_PROCESSES else "Raise"
            yield warned(
                CHECK,
                f"{pods.place}.max_processes",
                f"a user may have {allowed} processes, and a pod {min(limits)}: one user can take the node from others",
                f"{_RESERVED_PROCESSES} processes of a pod that no user can have",
                f"{lower} the kubelet's podPidsLimit.",
            )


def _processes_of_user(pods: PlannedPods) -> int:
    texts = [
        str(text) for container in pods.containers for key in ("command", "args") for text in container.get(key) or []
    ]
    return max((int(found[1]) for text in texts if (found := _PROCESSES.fullmatch(text))), default=0)


def _processes_of_pod(kube: Kube, machine: Json) -> int | None:
    """Return the limit of a pod on a machine; None if there is none, or without the right to read it."""
    try:
        answer = kube.get(f"{MACHINES}/{machine['metadata']['name']}/proxy/configz") or {}
    except KubernetesError:
        return None
    limit = (answer.get("kubeletconfig") or {}).get("podPidsLimit")
    return limit if isinstance(limit, int) and limit > 0 else None
