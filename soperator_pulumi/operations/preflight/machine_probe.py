"""Machines as seen by a worker's container: rights, mounts, control groups and kernel, tested by a pod on every kind.

A kind of machine is a system image with its kernel and container runtime: one pod answers for all machines of it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight.admitting_machines import kind_of, machines_for
from soperator_pulumi.operations.preflight.cluster_probe import ClusterProbe, ProbePlace, answer_of, probe_pod
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPods
from soperator_pulumi.render import layout

CHECK = "runtime"

CONTAINER = "machine"

_SCRIPT = Path(__file__).with_suffix(".sh")

_CAPABILITIES = str.split(
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP"
)
"""Capabilities by kernel number (linux/capability.h)."""

_OLDEST_KERNEL = (5, 14)
"""Oldest kernel whose mount_setattr(2) keeps root from following links of users in a volume with all mounts in it
(MOUNT_ATTR_NOSYMFOLLOW)."""

_APP_ARMOR = "Set jail.app_armor: unconfined, as the container's profile forbids mounting."
_MOUNTING = "Have the machine's security module and the container runtime allow SYS_ADMIN to mount."
_SECCOMP = "Have the container runtime's default seccomp profile allow it for SYS_ADMIN, as containerd's does."

_STEPS: Mapping[str, tuple[str, str]] = {
    "directory": ("a directory of the pod that root can write to", "Look at the pod's volumes."),
    "mount_namespace": ("a mount namespace of its own, in which a job's view is made", _SECCOMP),
    "bind": ("to mount a directory over itself", _MOUNTING),
    "close": ("to close volumes (nosuid, nodev, noexec, with all mounts in them)", _MOUNTING),
    "read_only": ("to make mounts read-only, with all mounts in them", _MOUNTING),
    "tmpfs": ("to mount a directory in memory", _MOUNTING),
    "move_root": ("to move a tree to the root, and enter it", _MOUNTING),
    "new_proc": ("to mount a new /proc, without the processes of others", "Let the pod run without user namespaces."),
    "new_queues": ("message queues of a job's own", "Have the kernel built with CONFIG_POSIX_MQUEUE."),
    "cgroup_of_its_own": (
        "to hold a job to its memory in the container's own control group",
        "Have the container runtime give a cgroup namespace (cgroup v2), or set slurm.constrain: none.",
    ),
    "lock_memory": ("to raise the limit of locked memory", "Allow SYS_RESOURCE, or set lock_memory: false."),
}
"""Steps of the script: the requirement, and the remedy."""

_MOUNTS = frozenset({"bind", "close", "read_only", "tmpfs", "move_root", "new_proc", "new_queues"})
"""Steps that begin with a mount. If the runtime's AppArmor profile applies, it refuses all of them."""

_CONTROLLERS = {"1": ("cpuset", "devices", "freezer", "memory"), "2": ("cpu", "cpuset", "memory")}
"""Controllers that Slurm needs to constrain jobs, by cgroup version (cgroup.conf(5))."""


def machine_probes(place: ProbePlace, planned: PlannedCluster, machines: Sequence[Json]) -> list[ClusterProbe]:
    """Return a probe for every kind of machine and every set of rights of the workers on it."""
    chosen: dict[str, tuple[PlannedPods, Json]] = {}
    for pods in planned.workers:
        for machine in machines_for(pods, machines):
            daemon = pods.spec["containers"][0]
            rights = (daemon["image"], daemon.get("securityContext"), pods.spec.get("runtimeClassName"))
            chosen.setdefault(f"{kind_of(machine)} {rights}", (pods, machine))
    return [
        _probe(place.name(f"machine-{number}"), pods, machine, constrains=planned.constrains)
        for number, (pods, machine) in enumerate(chosen.values())
    ]


def _probe(name: str, pods: PlannedPods, machine: Json, *, constrains: bool) -> ClusterProbe:
    where = str(machine["metadata"]["name"])
    place = f"{pods.place} on machine {where}"
    daemon = pods.spec["containers"][0]

    def judge(found: Mapping[str, Pod]) -> Iterator[Diagnosis]:
        answer = answer_of(found.get(name))
        if answer is None:
            yield warned(CHECK, place, _why_silent(found.get(name)), "", "Look at the findings about images above.")
        else:
            context = daemon.get("securityContext") or {}
            yield from answer_findings(place, parsed(answer), context, constrains=constrains)

    return ClusterProbe(CHECK, place, [_pod(name, pods, where)], [name], judge)


def _pod(name: str, pods: PlannedPods, machine: str) -> Json:
    daemon = pods.spec["containers"][0]
    volumes = {volume["name"]: volume for volume in pods.spec.get("volumes") or []}
    places = [
        volume_mount for volume_mount in daemon.get("volumeMounts") or [] if "emptyDir" in volumes[volume_mount["name"]]
    ]
    added = (daemon.get("securityContext") or {}).get("capabilities", {}).get("add") or []
    arguments = ["/run/slurm", layout.IMAGE_SCRIPTS, *(["lock_memory"] if "SYS_RESOURCE" in added else [])]
    container = {
        "name": CONTAINER,
        "image": daemon["image"],
        "imagePullPolicy": daemon.get("imagePullPolicy"),
        "command": ["/bin/sh", "-c", _SCRIPT.read_text(encoding="utf-8"), "sh", *arguments],
        "securityContext": daemon.get("securityContext"),
        "volumeMounts": places,
    }
    body = probe_pod(name, [container], pods.spec, machine)
    named = {place["name"] for place in places}
    body["spec"]["volumes"] = [volume for name, volume in volumes.items() if name in named]
    body["spec"]["securityContext"] = pods.spec.get("securityContext")
    return body


def _why_silent(pod: Pod | None) -> str:
    if pod is None:
        return "not checked: the probe's pod was refused or deleted"
    return "not checked: the probe's pod did not answer" if pod.ended else "not checked: the probe's pod did not end"


def parsed(answer: str) -> dict[str, str]:
    """Return the lines of the script's answer, by name."""
    return dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)


def answer_findings(
    place: str, answer: Mapping[str, str], context: Json, *, constrains: bool = True
) -> Iterator[Diagnosis]:
    """Yield the faults of a machine in the script's answer, or one passed finding if there are none.

    Args:
        place: Place of the findings.
        answer: Lines of the script by their names.
        context: Security context of slurmd's container.
        constrains: True if Slurm holds jobs to their resources by cgroups.
    """
    if not constrains:
        answer = {name: value for name, value in answer.items() if name != "cgroup_of_its_own"}
    faults = [
        *_missing_rights(place, answer, context),
        *_failed_steps(place, answer),
        *_kernel(place, answer),
        *_cgroups(place, answer),
    ]
    yield from faults
    if not faults:
        version = answer.get("cgroup_version", "?")
        profile = _app_armor(answer) or "none"
        text = f"kernel {answer.get('kernel', '?')}, cgroup v{version}, AppArmor: {profile}; all steps of a job work"
        yield passed(CHECK, place, text)


def _missing_rights(place: str, answer: Mapping[str, str], context: Json) -> Iterator[Diagnosis]:
    held = int(answer.get("effective", "0") or "0", 16)
    added = (context.get("capabilities") or {}).get("add") or []
    missing = [name for name in added if name in _CAPABILITIES and not held >> _CAPABILITIES.index(name) & 1]
    if missing:
        text = f"the container has no {', '.join(missing)}, which its pod asks for"
        cure = "Have the container runtime and its policies give what the pod's security context adds."
        yield refused(CHECK, place, text, ", ".join(added), cure)
    users = answer.get("users", "").split()
    if users and users[:2] != ["0", "0"]:
        text = f"root of the container is user {users[1] if len(users) > 1 else '?'} of the machine (a user namespace)"
        cure = "Let the pods run in the machine's user namespace (hostUsers)."
        yield refused(CHECK, place, text, "root itself, as slurmd starts jobs of any user", cure)


def _failed_steps(place: str, answer: Mapping[str, str]) -> Iterator[Diagnosis]:
    for name, (need, cure) in _STEPS.items():
        if answer.get(name, "ok") != "ok":
            words = answer[name].removeprefix("no ").strip()
            profile = _app_armor(answer)
            confined = bool(profile) and "unconfined" not in profile
            by = f" (AppArmor: {profile})" if confined else ""
            cure = _APP_ARMOR if confined and name in _MOUNTS else cure  # noqa: PLW2901
            yield refused(CHECK, place, f"the worker's container is not allowed {need}: {words}{by}", need, cure)
    if "ended" not in answer:
        yield warned(CHECK, place, "the probe ended before its last step", "", "Run it again.")


def _app_armor(answer: Mapping[str, str]) -> str:
    """Return the AppArmor profile with its mode; empty if there is none, or for an SELinux label, which has no mode."""
    given = answer.get("app_armor", "")
    return given if given == "unconfined" or given.endswith(")") else ""


def _kernel(place: str, answer: Mapping[str, str]) -> Iterator[Diagnosis]:
    match = re.match(r"(\d+)\.(\d+)", answer.get("kernel", ""))
    if match and (int(match[1]), int(match[2])) < _OLDEST_KERNEL:
        needed = f"Linux {_OLDEST_KERNEL[0]}.{_OLDEST_KERNEL[1]} or newer, for mount_setattr(2)"
        yield refused(CHECK, place, f"its kernel is {answer['kernel']}", needed, "Choose a newer system image.")


def _cgroups(place: str, answer: Mapping[str, str]) -> Iterator[Diagnosis]:
    if answer.get("oom_group") == "1":
        text = "a container whose memory is out loses all processes, and a worker cannot change it (memory.oom.group)"
        cure = "Set singleProcessOOMKill: true in the kubelet's configuration (Kubernetes 1.32 or newer)."
        yield warned(CHECK, place, text, "the end of one process, or slurmd and all jobs are lost", cure)
    if "cgroup_of_its_own" not in answer:  # the cluster constrains nothing
        return
    version = answer.get("cgroup_version", "")
    there = re.split(r"[\s,]+", answer.get("controllers", ""))
    missing = [name for name in _CONTROLLERS.get(version, ()) if name not in there]
    if missing:
        text = f"its cgroups (v{version}) have no {', '.join(missing)}"
        cure = "Enable them on the machine (cgroup_enable= of the kernel), or set slurm.constrain: none."
        yield refused(CHECK, place, text, f"the controllers {', '.join(_CONTROLLERS[version])}", cure)
