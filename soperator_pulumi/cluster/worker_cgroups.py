"""The machine's cgroups in a worker's container: the node's own part is Slurm's, everything else is read-only.

cgroup v1 has a hierarchy for each controller, in which Slurm makes `slurm_<node>` (with CgroupMountpoint and prefix as
they are by default). That is made before slurmd starts and bound over itself, and the hierarchy around it is made
read-only, but for the list of processes at its top: there slurmstepd goes as it ends, or could not remove its step's
cgroups (src/plugins/cgroup/v1/cgroup_v1.c). Whoever is root with SYS_ADMIN in the container can take that back: it
keeps mistakes in, not an attacker.

The node's part has the pod's memory as its limit, as it is outside of the pod's own cgroup: what jobs have left in
directories in memory counts there when they have ended. After a restart of the container more may be in use, and the
kernel refuses the limit: the one of before holds.

With cgroup v2 Slurm hands out controllers from the root of the only hierarchy down, and moves processes across it: what
is above its own part stays writable.
"""

from soperator_pulumi.render import layout

CGROUPS = "/sys/fs/cgroup"

_USED = ("cpuacct", "cpuset", "devices", "freezer", "memory")
"""The controllers of v1 in which Slurm 24.11 makes cgroups (src/plugins/cgroup/v1)."""

_MIB = 1024**2

_NARROW = """\
mkdir -p {seen}
if [ ! -e {cgroups}/cgroup.controllers ]; then
    for hierarchy in {cgroups}/*; do
        name=${{hierarchy##*/}}
        if [ -L "$hierarchy" ]; then
            ln -sfn "$(readlink "$hierarchy")" {seen}/"$name"
            continue
        fi
        case ,$name, in {used})
            own=$hierarchy/slurm_$node
            mkdir -p "$own" {seen}/"$name/slurm_$node"
            mount --bind "$own" "$own"
            mount --bind "$own" {seen}/"$name/slurm_$node"
            mount --bind "$hierarchy/cgroup.procs" "$hierarchy/cgroup.procs" ;;
        esac
        case $name in memory) echo {memory_bytes} > "$own/memory.limit_in_bytes" || true ;; esac
        mount -o remount,bind,ro "$hierarchy"
    done
    mount -o remount,bind,ro {cgroups}
fi
"""

_REMOVE = """\
unshare --mount sh -c 'for own in {cgroups}/*/slurm_"$1"; do
    umount "$own"
    mount -o remount,bind,rw "${{own%/*}}"
    find "$own" -depth -type d -exec rmdir {{}} \\;
done' sh "$node" 2>/dev/null
"""


def narrow(memory_mib: int, cgroups: str = CGROUPS) -> str:
    """Return the part of the start script that leaves slurmd its node's own cgroups, in `$node`, and jobs those alone.

    All jobs of the node together get `memory_mib`; with v2 the pod's cgroup has that limit. What they see at
    /sys/fs/cgroup is prepared in `layout.JAIL_CGROUPS`; with v2 that is nothing.
    """
    used = "|".join(f"*,{name},*" for name in _USED)
    return _NARROW.format(cgroups=cgroups, seen=layout.JAIL_CGROUPS, used=used, memory_bytes=memory_mib * _MIB)


def remove(cgroups: str = CGROUPS) -> str:
    """Return the part of the stop script that takes the node's own cgroups, in `$node`, from the machine.

    slurmd leaves them; rmdir takes only what no process is in, and slurmstepd makes anew what it misses. In a namespace
    of its own nothing is mounted on them; slurmd's own mounts stay as they are.
    """
    return _REMOVE.format(cgroups=cgroups)
