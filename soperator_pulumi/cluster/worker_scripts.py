"""What runs in a worker's container besides slurmd itself: as it starts, once it answers, and before it stops.

A pod can go without Pulumi: somebody deletes it or scales the StatefulSet, or the kubelet restarts its container. So
it drains its own node before it stops, and undoes exactly that drain when the same node is there again. It never
touches a drain of someone else.

A node that slurmctld does not know registers drained: a run of ours that was told that slurmctld does not know it may
be about to take its pod away. The run that waits for it puts it into service; without one it does so itself, later.
"""

import shlex
from collections.abc import Sequence

from soperator_pulumi.cluster import worker_cgroups
from soperator_pulumi.cluster.containers import LAST_WORDS
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.worker_record import ASK, renew_record
from soperator_pulumi.render import layout
from soperator_pulumi.slurm.drain.reason import Marker, Operation

PROCESSES = "/proc"

NEWCOMER_SECONDS = 120
"""How long a new node stays drained unless a run puts it into service: as long a run may take from its last look until
the pod is told to go. Kubernetes' controller takes a thousand pods away in less than a minute (20 calls a second)."""

_LOOK_SECONDS = 2
_UNANSWERED_SECONDS = 30

_CLOSE = """\
close() {
    mount -o "remount,bind,$1" "$2" && return
    echo "slurmd is not started, as users could run programs in $2 outside of the jail, or change it." \\
        "Where machines have AppArmor, set jail.app_armor: unconfined." >&2
    exit 1
}
"""

_CLOSE_DEVICES = f"""\
devices=$(mountpoint -d /dev)
while read -r _ _ device _ place _; do
    case $place in {layout.SHARED_MEMORY_DIR} | {layout.SHARED_MEMORY_DIR}/* | /dev/mqueue) continue ;; esac
    case $device:$place in "$devices":* | *:/dev/*) close ro "$place" ;; esac
done < /proc/self/mountinfo
chmod go= {LAST_WORDS}
: < {layout.OPEN_AS_USER}
"""
"""slurmd gives away, as root, the files into which it writes for a user (sbcast), so what everybody may write to is
read-only here: devices, which stay usable, with those that the runtime has laid over files of /proc. The file that
Kubernetes reads at the container's end is root's alone. The last line fails where slurmd could wait in a user's
pipe."""

_CLOSED = "nosuid=recursive,nodev=recursive,noexec=recursive"
"""How volumes are mounted in the worker: also what is mounted inside a directory of the machine."""

_WEIGH = """\
ordinal=${node##*-}
weight=1
while [ $(((1 << weight) - 1)) -le "$ordinal" ]; do weight=$((weight + 1)); done
"""
"""Slurm fills nodes of a lower weight first, and a StatefulSet gives up its highest ordinals: a scale-down then mostly
takes idle nodes. Bands that double (0, 1-2, 3-6, 7-14 ...) are few, which costs the scheduler nothing, and do not
depend on how many nodes there are, so that scaling restarts none."""


JOIN = f"""\
until ask; do sleep {_LOOK_SECONDS}; done
sleep {NEWCOMER_SECONDS}
until {{ ask && lift "$newcomer"; }} || unknown; do sleep {_LOOK_SECONDS}; done
"""
"""Beside slurmd: puts a new node into service when no run of ours has done so."""

_MESSAGE_QUEUES = "/dev/mqueue"
_SWEPT = (layout.TEMPORARY_DIR, layout.SHARED_MEMORY_DIR)


def start_script(
    owner: str,
    places: Sequence[Mount],
    binds: Sequence[str],
    *,
    processes: int,
    memory_mib: int,
    lock_memory: bool = False,
    cgroups: str | None = None,
) -> str:
    """Return the script that starts slurmd, with what its node registers with as its first argument.

    Before that it makes devices read-only and every volume one from which nothing is executed, and notes what a job
    on this node sees of its volumes: a pod that has not been replaced since the spec changed goes on with what it has.
    It notes, too, in which of them nothing is to stay of a user whose last job has ended.

    A state that a node registers with counts only where slurmctld has no record of it (measured with 24.11).

    Args:
        owner: Stack and component that the cluster belongs to.
        places: The volumes.
        binds: What a job sees of the container, as arguments of the plugin.
        processes: How many processes a user may have. slurmd and its steps, as root's, do not count; jobs inherit it.
        memory_mib: What all jobs on the node get together, where cgroups limit it.
        lock_memory: Whether jobs may lock memory without a limit; the container has SYS_RESOURCE until slurmd starts.
        cgroups: Where the machine's cgroups are; None where it has none.
    """
    remounts = [f"close {'ro=recursive,' if place.read_only else ''}{_CLOSED} {place.path}\n" for place in places]
    # What a claim or the machine holds may be in use elsewhere.
    own = [place.path for place in places if place.path in _SWEPT and place.source.empty_dir is not None]
    note = (
        f"printf '%s\\n' {' '.join(binds)} > {layout.JAIL_BINDS}\n"
        f"printf '%s\\n' {' '.join([*own, _MESSAGE_QUEUES])} > {layout.JAIL_OWN}\n"
    )
    limits = f"prlimit --nproc={processes}:{processes}"
    if lock_memory:
        limits += " --memlock=unlimited:unlimited setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource"
    controller = f"{layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}"
    # -b: the node's boot is the pod's start, not the machine's, or a resumed node waits for a reboot.
    conf = '"$1 Weight=$weight State=DRAIN Reason=\\"$newcomer\\""'
    slurmd = f"slurmd -D -b -Z --conf-server {controller} --conf {conf}\n"
    start = f"exec {limits} env LD_PRELOAD={layout.OPEN_AS_USER} {slurmd}"
    # Twice in parentheses: no child of slurmd, which would never reap it.
    join = f"newcomer={_marker(owner, Operation.POD_START)}\n( (\n{JOIN}) >/dev/null 2>&1 & )\n"
    narrow = worker_cgroups.narrow(memory_mib, cgroups) if cgroups else ""
    before = _CLOSE + _CLOSE_DEVICES + "".join(remounts) + note
    return before + ASK + narrow + _WEIGH + renew_record(owner, controller) + join + start


def started_script(owner: str) -> str:
    """Return the script of the startup probe: slurmd answers, and a drain of its own pod's stop is undone.

    It fails as long as slurmctld does not answer: whether the node is drained is not known.
    """
    return f"""\
{ASK}
scontrol show slurmd >/dev/null || exit
ask || {{ unknown && exit; echo "$shown" >&2; exit 1; }}
lift {_marker(owner, Operation.POD_STOP)}
"""


def stop_script(owner: str, *, cgroups: str | None, processes: str = PROCESSES) -> str:
    """Return the script that runs before slurmd is told to stop, for at most the pod's grace period.

    It drains the node, unless no job starts on it as it is (draining a failed node would bring it back later, and a
    reason that somebody gave would be lost), and returns when no job is on it. While slurmctld does not answer it asks
    again; when no job runs here either, only for as long as it takes to replace the controller's pod.

    Args:
        owner: Stack and component that the cluster belongs to.
        cgroups: Where the machine's cgroups are, of which the node's are removed then; None where it has none.
        processes: Where the processes of the container are.
    """
    remove = worker_cgroups.remove(cgroups) if cgroups else ""
    return f"""\
{ASK}
heard=$(date +%s)
while :; do
    if ask; then
        heard=$(date +%s)
        case $state in
            *+DRAIN* | *+FAIL* | DOWN*) jobs=$(squeue -h -o %A -w "$node") && [ -z "$jobs" ] && break ;;
            *) scontrol update nodename="$node" state=drain reason={_marker(owner, Operation.POD_STOP)} && continue ;;
        esac
    else
        unknown && break
        [ $(($(date +%s) - heard)) -lt {_UNANSWERED_SECONDS} ] ||
            grep -qx slurmstepd {processes}/[0-9]*/comm 2>/dev/null || break
    fi
    sleep {_LOOK_SECONDS}
done
{remove}exit 0
"""


def _marker(owner: str, operation: Operation) -> str:
    return shlex.quote(str(Marker(owner, operation)))
