# shellcheck shell=sh
# Tries in a worker's container what its start.sh and the SPANK plugin do, and writes a line for each to the termination
# message: NAME=VALUE, or NAME=ok, or NAME=no REASON. Every mount is in a namespace of its own, and gone in the end; the
# cgroup that is opened goes with the container.
# Called as: sh -c SCRIPT sh DIRECTORY SCRIPTS [lock_memory]
place=$1/preflight
scripts=$2
out=/dev/termination-log
shift 2

tell() { printf '%s=%s\n' "$1" "$2" >> $out; }
try() {
    name=$1
    shift
    if words=$("$@" 2>&1 < /dev/null); then tell "$name" ok; else
        tell "$name" "no $(printf '%s\n' "$words" | tail -n 1 | cut -c 1-160)"
    fi
}
in_mounts() { try "$1" unshare --mount sh -ec "$2" sh "$place"; }

mkdir -p "$place" || tell directory "no $place cannot be made"
tell kernel "$(uname -r)"
tell effective "$(sed -n 's/^CapEff:\t//p' /proc/self/status)"
tell seccomp "$(sed -n 's/^Seccomp:\t//p' /proc/self/status)"
tell no_new_privileges "$(sed -n 's/^NoNewPrivs:\t//p' /proc/self/status)"
tell app_armor "$(cat /proc/self/attr/apparmor/current 2> /dev/null || cat /proc/self/attr/current 2> /dev/null)"
tell users "$(tr -s ' ' ' ' < /proc/self/uid_map | head -n 1)"
tell masks "$(grep -c ' /proc/' /proc/self/mountinfo)"
try mount_namespace unshare --mount --propagation unchanged true # no mount(2), which a security module may refuse
# shellcheck disable=SC2016 # the script of another shell
{
    in_mounts bind 'mount --bind "$1" "$1"'
    in_mounts close 'mount --bind "$1" "$1"
        mount -o remount,bind,nosuid=recursive,nodev=recursive,noexec=recursive "$1"'
    in_mounts read_only 'mount --bind "$1" "$1"; mount -o remount,bind,ro=recursive "$1"'
    in_mounts tmpfs 'mount -t tmpfs -o size=1m none "$1"'
    in_mounts move_root 'mount --rbind / "$1"; cd "$1"; mount --move . /; exec chroot . true'
    try new_proc unshare --mount --pid --fork sh -ec 'mount -t proc -o hidepid=2 proc "$1"' sh "$place"
    try new_queues unshare --mount --ipc sh -ec 'mount -t mqueue none "$1"' sh "$place"
}
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    tell cgroup_version 2
    tell controllers "$(cat /sys/fs/cgroup/cgroup.controllers)"
else
    tell cgroup_version 1
    tell controllers "$(cd /sys/fs/cgroup && echo ./* | tr -d './')"
fi
# start.sh opens the container's cgroup, and Slurm holds a step to its memory.
# shellcheck disable=SC2016 # the script of another shell
try cgroup_of_its_own sh -ec '. "$1/layout.sh"; . "$1/cgroups.sh"
    open_cgroups preflight
    own=$CGROUPS/system.slice/preflight_slurmstepd.scope limit=memory.max
    if unified; then echo "+memory" > "${own%/*}/cgroup.subtree_control"
    else own=$CGROUPS/memory/preflight limit=memory.limit_in_bytes; fi
    mkdir -p "$own"
    echo 67108864 > "$own/$limit"
    sh -ec "echo \$\$ > $own/cgroup.procs"' sh "$scripts"
tell oom_group "$(cat /sys/fs/cgroup/memory.oom.group 2> /dev/null)"
for wanted; do
    case $wanted in
        lock_memory) try lock_memory prlimit --memlock=unlimited:unlimited true ;;
    esac
done
tell ended ok
exit 0
