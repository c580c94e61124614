# shellcheck shell=sh
# The machine's cgroups in a worker's container: the node's own part is Slurm's, everything else is read-only.
#
# cgroup v1 has a hierarchy for each controller, in which Slurm makes `slurm_<node>` (with CgroupMountpoint and prefix as
# they are by default). That is made before slurmd starts and bound over itself, and the hierarchy around it is made
# read-only, but for the list of processes at its top: slurmstepd moves there as it ends, or could not remove its step's
# cgroups (src/plugins/cgroup/v1/cgroup_v1.c). Whoever is root with SYS_ADMIN in the container can undo that: it keeps
# mistakes in, not an attacker.
#
# With cgroup v2 Slurm hands out controllers from the root of the only hierarchy down, and moves processes across it: what
# is above its own part stays writable, and the pod's cgroup has the limit of memory.

# Allows a cgroup the devices that the container has, and pseudoterminals, and no others: allow_own_devices CGROUP
#
# Jobs leave the pod's own cgroup of devices for one below this: without a list of its own it would allow all devices of
# the machine. What a former pod of this name has left below it is removed first: the kernel refuses another list above
# cgroups that exist.
allow_own_devices() {
    find "$1" -mindepth 1 -depth -type d -exec rmdir {} +
    echo a > "$1/devices.deny"
    echo "c 136:* rwm" > "$1/devices.allow"
    find "$DEVICES" ! -type d ! -path "$DEVICES/pts/*" | while read -r device; do
        [ -c "$device" ] && kind=c || { [ -b "$device" ] && kind=b; } || continue
        # shellcheck disable=SC2046 # two words
        printf "$kind %d:%d rwm\n" $(stat -Lc '0x%t 0x%T' "$device") > "$1/devices.allow"
    done
}

# Leaves slurmd the cgroups of its own node, and jobs those alone, in $JAIL_CGROUPS: narrow_cgroups NODE MEMORY_MIB
#
# The node's part has the pod's memory as its limit, as it is outside of the pod's own cgroup: what jobs have left in
# directories in memory counts there when they have ended. After a restart of the container more may be in use, and the
# kernel refuses the limit: the one of before holds.
narrow_cgroups() {
    mkdir -p "$JAIL_CGROUPS"
    [ ! -e "$CGROUPS/cgroup.controllers" ] || return 0
    for hierarchy in "$CGROUPS"/*; do
        name=${hierarchy##*/}
        if [ -L "$hierarchy" ]; then
            ln -sfn "$(readlink "$hierarchy")" "$JAIL_CGROUPS/$name"
            continue
        fi
        # The controllers of v1 in which Slurm 24.11 makes cgroups (src/plugins/cgroup/v1).
        case ,$name, in *,cpuacct,* | *,cpuset,* | *,devices,* | *,freezer,* | *,memory,*)
            own_cgroup=$hierarchy/slurm_$1
            mkdir -p "$own_cgroup" "$JAIL_CGROUPS/$name/slurm_$1"
            case $name in devices) allow_own_devices "$own_cgroup" ;; esac
            mount --bind "$own_cgroup" "$own_cgroup"
            mount --bind "$own_cgroup" "$JAIL_CGROUPS/$name/slurm_$1"
            mount --bind "$hierarchy/cgroup.procs" "$hierarchy/cgroup.procs" ;;
        esac
        case $name in memory) echo $(($2 * 1024 * 1024)) > "$own_cgroup/memory.limit_in_bytes" || true ;; esac
        mount -o remount,bind,ro "$hierarchy"
    done
    mount -o remount,bind,ro "$CGROUPS"
}
