#!/bin/sh
# Starts slurmd. The container's command: start.sh KEY=VALUE... | lock_memory | cgroups
#
#   controller=HOST:PORT     slurmctld
#   conf="Feature=... CPUs=... RealMemory=..."   the node's record, where slurmctld has none
#   volume=PATH[:ro]         a volume, from which nothing is executed
#   bind=PATH[:ro]           a directory of the pod that jobs see, an argument of the SPANK plugin
#   own=PATH                 a directory in which nothing stays of a user whose last job on the node has ended
#   processes=N              processes of a user; slurmd and its steps are root's and do not count
#   memory_mib=N             memory of all jobs on the node together, where cgroups limit it
#   pod_start=REASON         reason of the drain with which a new node registers
#   newcomer_seconds=N       how long a new node stays drained unless a run puts it into service
#   ours=REGEX               reasons of drains that the cluster's own programs set
#   lock_memory              jobs lock memory without a limit; the container has SYS_RESOURCE until slurmd starts
#   cgroups                  the machine's cgroups are mounted
set -eu
scripts=${0%/*}
. "$scripts/layout.sh"
. "$scripts/close_volumes.sh"
. "$scripts/cgroups.sh"

other_version="images.worker is of another version than the program that made this pod. Name the image of its version."
controller='' conf='' volumes='' binds='' own='' processes='' memory_mib='' pod_start='' newcomer_seconds='' ours=''
lock_memory=false cgroups=false
for argument; do
    value=${argument#*=}
    case $argument in
        controller=*) controller=$value ;;
        conf=*) conf=$value ;;
        volume=*) volumes="$volumes $value" ;;
        bind=*) binds="$binds $argument" ;;
        own=*) own="$own $value" ;;
        processes=*) processes=$value ;;
        memory_mib=*) memory_mib=$value ;;
        pod_start=*) pod_start=$value ;;
        newcomer_seconds=*) newcomer_seconds=$value ;;
        ours=*) ours=$value ;;
        lock_memory) lock_memory=true ;;
        cgroups) cgroups=true ;;
        *) echo "start.sh: unknown argument \"$argument\". $other_version" >&2 && exit 64 ;;
    esac
done
: "${controller:?$other_version}" "${conf:?$other_version}" "${volumes:?$other_version}" "${binds:?$other_version}"
: "${processes:?$other_version}" "${memory_mib:?$other_version}" "${pod_start:?$other_version}"
: "${newcomer_seconds:?$other_version}" "${ours:?$other_version}"

close_devices
# shellcheck disable=SC2086 # words: the specification allows no blank in a path
close_volumes $volumes
# A pod that has not been replaced since the specification changed keeps what it has: jobs see what these files list.
# shellcheck disable=SC2086
printf '%s\n' $binds > "$JAIL_BINDS"
# shellcheck disable=SC2086
printf '%s\n' $own "$MESSAGE_QUEUES" > "$JAIL_OWN"

node=$(hostname)
if $cgroups; then narrow_cgroups "$node" "$memory_mib"; fi

# Slurm fills nodes of a lower weight first, and a StatefulSet gives up its highest ordinals: a scale-down then mostly
# takes idle nodes. Bands that double (0, 1-2, 3-6, 7-14 ...) are few, which costs the scheduler nothing, and do not
# depend on how many nodes there are, so that scaling restarts none.
ordinal=${node##*-}
weight=1
while [ $(((1 << weight) - 1)) -le "$ordinal" ]; do weight=$((weight + 1)); done

# The commands find Slurm's files at slurmctld before slurmd has them.
SLURM_CONF_SERVER=$controller "$scripts/renew_record.sh" "$node" "$conf" "$weight" "$ours"
# Twice in parentheses: no child of slurmd, which would never reap it.
( ("$scripts/put_into_service.sh" "$node" "$pod_start" "$newcomer_seconds" > /dev/null 2>&1 &) )

# -b: the node's boot is the pod's start, not the machine's, or a resumed node waits for a reboot.
# A state that a node registers with counts only where slurmctld has no record of it (measured with 24.11).
set -- slurmd -D -b -Z --conf-server "$controller" \
    --conf "$conf Weight=$weight State=DRAIN Reason=\"$pod_start\""
set -- env LD_PRELOAD="$OPEN_AS_USER" "$@"
if $lock_memory; then
    set -- --memlock=unlimited:unlimited setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource "$@"
fi
exec prlimit --nproc="$processes:$processes" "$@"
