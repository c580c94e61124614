# shellcheck shell=sh
# The container's own cgroup, in which Slurm makes those of its jobs.
#
# The container runtime shows a container its own part of each hierarchy, read-only. Below it jobs have what the pod has
# at most: memory, CPUs and devices. They count as the pod's, and go with it. Slurm needs it writable, and itself in a
# cgroup namespace of which it is the root: runtimes give one with cgroup v2, with v1 start.sh makes it.

# Succeeds on a machine with cgroup v2.
unified() { [ -e "$CGROUPS/cgroup.controllers" ]; }

# Opens the container's own cgroup for Slurm: open_cgroups NODE
open_cgroups() {
    if unified; then
        # A root of a machine has no type. Slurm would take jobs, and itself, out of their pod there.
        [ -e "$CGROUPS/cgroup.type" ] || { echo "The machine's own cgroups are mounted here." >&2 && return 1; }
        mount -o remount,bind,rw "$CGROUPS" && hand_out_controllers "$1"
        return
    fi
    for hierarchy in "$CGROUPS"/*; do
        # The controllers of v1 in which Slurm 24.11 makes cgroups (src/plugins/cgroup/v1).
        case ,${hierarchy##*/}, in *,cpuacct,* | *,cpuset,* | *,devices,* | *,freezer,* | *,memory,*)
            [ -L "$hierarchy" ] || mount -o remount,bind,rw "$hierarchy" || return ;;
        esac
    done
    join_rights_of_devices
}

# Slurm allows a job to read, write and make a device in one rule. A rule counts only if one of the container's has all of
# it, and runtimes have one to make any device and others to open those of the pod: a job with a GPU would not start.
join_rights_of_devices() {
    list="$CGROUPS/devices/devices.list"
    [ -e "$list" ] || return 0
    devices=$(cat "$list")
    ! echo "$devices" | grep -q '^a' || return 0 # all are allowed
    echo "$devices" | while read -r kind numbers _; do
        echo "$kind $numbers m" > "$CGROUPS/devices/devices.allow" || return
    done
}

# Makes the container's cgroup one that hands out controllers: no process may be in it then.
#
# With IgnoreSystemd slurmd does the same, but it does it again when it is reconfigured, and ends (measured with
# 24.11.5). So the folder that systemd would make for steps is there before slurmd starts. A probe of the kubelet may
# come meanwhile, and be none of this container's processes yet: it cannot be moved, but soon can. Later ones join the
# first process.
#
# The kubelet has the kernel kill all processes of a container whose memory is out (memory.oom.group): slurmd would go
# with all jobs, where one process is enough.
hand_out_controllers() {
    [ ! -e "$CGROUPS/memory.oom.group" ] || echo 0 > "$CGROUPS/memory.oom.group"
    mkdir -p "$CGROUPS/system" "$CGROUPS/system.slice/$1_slurmstepd.scope"
    for _ in 1 2 3 4 5; do
        while read -r process; do
            echo "$process" > "$CGROUPS/system/cgroup.procs" || true # it may have ended
        done < "$CGROUPS/cgroup.procs"
        ! echo "+cpuset +cpu +memory" > "$CGROUPS/cgroup.subtree_control" || return 0
        sleep 1
    done
    return 1
}
