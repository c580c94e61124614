#!/bin/sh
# Starts slurmd. The container's command: start.sh KEY=VALUE... | lock_memory
#
#   controller=HOST:PORT     slurmctld
#   conf="Feature=... CPUs=... RealMemory=..."   the node's record, where slurmctld has none
#   volume=PATH[:ro]         a volume, from which nothing is executed
#   bind=PATH[:ro]           a directory of the pod that jobs see, an argument of the SPANK plugin
#   containers=MIB           jobs may have containers, an argument of the SPANK plugin
#   own=PATH                 a directory in which nothing stays of a user whose last job on the node has ended
#   processes=N              processes of a user; slurmd and its steps are root's and do not count
#   pod_start=REASON         reason of the drain with which a new node registers
#   not_verified=REASON      reason instead, where a long check has to pass before anybody puts a new node into service
#   newcomer_seconds=N       how long a new node stays drained unless a run puts it into service
#   ours=REGEX               reasons of drains that the cluster's own programs set
#   gpus=VENDOR:COUNT:TYPE   whole GPUs of the node, without a type where it has none
#   mig=PROFILE:COUNT        MIG instances of the node
#   shards_per_gpu=N         shards of each whole GPU
#   cpu_layout=SOCKETS:CORES_PER_SOCKET   sockets that the GPUs' cores are counted in
#   gpu_sockets=SOCKET,...   socket of every GPU, in place of what the machine says
#   environment=NAME=VALUE   a variable of jobs that have no value for it
#   lock_memory              jobs lock memory without a limit; the container has SYS_RESOURCE until slurmd starts
set -eu
scripts=${0%/*}
. "$scripts/layout.sh"
. "$scripts/close_volumes.sh"
. "$scripts/cgroups.sh"
. "$scripts/gpus.sh"
. "$scripts/node_record.sh"

other_version="images.worker is of another version than the program that made this pod. Name the image of its version."
controller='' conf='' volumes='' binds='' own='' processes='' pod_start='' not_verified='' newcomer_seconds='' ours=''
gpus='' mig='' shards='' cpu_layout='' gpu_sockets='' containers='' lock_memory=false
mkdir -p "$JOB_FILES"
: > "$JOB_FILES/environment"
for argument; do
    value=${argument#*=}
    case $argument in
        controller=*) controller=$value ;;
        conf=*) conf=$value ;;
        volume=*) volumes="$volumes $value" ;;
        bind=*) binds="$binds $argument" ;;
        containers=*) containers=$argument ;;
        own=*) own="$own $value" ;;
        processes=*) processes=$value ;;
        pod_start=*) pod_start=$value ;;
        not_verified=*) not_verified=$value ;;
        newcomer_seconds=*) newcomer_seconds=$value ;;
        ours=*) ours=$value ;;
        gpus=*) gpus=$value ;;
        mig=*) mig=$value ;;
        shards_per_gpu=*) shards=$value ;;
        cpu_layout=*) cpu_layout=$value ;;
        gpu_sockets=*) gpu_sockets=$value ;;
        environment=*) printf '%s\n' "$value" >> "$JOB_FILES/environment" ;;
        lock_memory) lock_memory=true ;;
        *) echo "start.sh: unknown argument \"$argument\". $other_version" >&2 && exit 64 ;;
    esac
done
: "${controller:?$other_version}" "${conf:?$other_version}" "${volumes:?$other_version}" "${binds:?$other_version}"
: "${processes:?$other_version}" "${pod_start:?$other_version}" "${newcomer_seconds:?$other_version}" "${ours:?$other_version}"

needs_to_mount
close_devices
# shellcheck disable=SC2086 # words: the specification allows no blank in a path
close_volumes $volumes
close_others
# shellcheck disable=SC2086
limit_files $own
# shellcheck disable=SC2086
close_binds $binds
mount_pmix
# shellcheck disable=SC2086
(cd "$scripts" && python3 -B -m gpu_driver "$PROC/self/mountinfo" "$DRIVER" $volumes)
if [ -d "$DRIVER" ]; then
    close_volumes "$DRIVER:ro"
    # For programs that a running job starts after root has made the jail's library cache (view_driver.h).
    echo LD_LIBRARY_PATH=/usr/local/nvidia/lib64 >> "$JOB_FILES/environment"
fi
# A pod that has not been replaced since the specification changed keeps what it has: these files tell.
# shellcheck disable=SC2086
printf '%s\n' $binds $containers > "$JAIL_BINDS"
# shellcheck disable=SC2086
printf '%s\n' $own "$MESSAGE_QUEUES" > "$JAIL_OWN"

echo "# Generic resources of this node, by its pod." > "$NODE_GRES"
if [ -n "$gpus" ]; then node_gres "$gpus" "$mig" "$shards" >> "$NODE_GRES"; fi
if [ -n "$cpu_layout" ]; then place_gpus "$cpu_layout" "$gpu_sockets"; fi

# With slurm.constrain: none Slurm uses no cgroups, and starts without. The pod is the same, so that a change of the
# setting reaches every slurmd by its configuration alone.
node=$(hostname)
open_cgroups "$node" || echo "Slurm can make no cgroups: slurmd does not start with slurm.constrain: cgroup." >&2

# Steps of an earlier container are gone. By their sockets slurmd would report them to slurmctld as running, and their
# jobs would stay until their time limit. A batch job that is requeued and finds its former script cannot start, and is
# held (both measured with 24.11.5).
find "$SPOOL_DIR" -maxdepth 1 \( -type s -o -type d -name 'job[0-9]*' \) -exec rm -rf {} +
rm -rf "$FOUND_IMAGES"
# The commands find Slurm's files at slurmctld before slurmd has them.
export SLURM_CONF_SERVER="$controller"
end_lost_jobs "$pod_start"

# Slurm fills nodes of a lower weight first, and a StatefulSet gives up its highest ordinals: a scale-down then mostly
# takes idle nodes. Bands that double (0, 1-2, 3-6, 7-14 ...) are few, which costs the scheduler nothing, and do not
# depend on how many nodes there are, so that scaling restarts none.
ordinal=${node##*-}
weight=1
while [ $(((1 << weight) - 1)) -le "$ordinal" ]; do weight=$((weight + 1)); done

# With another layout than slurmctld, slurmd would bind a job to cores of others, or to none (task/cgroup, 24.11.5). The
# cores of the GPUs are those of the declared layout.
"$scripts/renew_record.sh" "$node" "$conf" "$weight" "$ours" || {
    [ $? = 3 ]
    until ask; do sleep 2; done
    conf=$(in_recorded_layout "$conf")
    sed -i 's/ Cores=.*//' "$NODE_GRES"
}
unset SLURM_CONF_SERVER
# Twice in parentheses: no child of the supervisor, which would never reap it.
if [ -z "$not_verified" ]; then
    ( ("$scripts/put_into_service.sh" "$node" "$pod_start" "$newcomer_seconds" > /dev/null 2>&1 &) )
fi

# slurmd may end while jobs run: they do not need it, and it finds their steps when it starts again. Services are in a
# directory from which nothing is executed, so their programs are links to those of the image.
rm -rf "$SERVICES"
mkdir "$SERVICES"
cp -rs "$scripts/services/." "$SERVICES"
[ -n "$containers" ] || rm -r "$SERVICES/containers"
# A state that a node registers with counts only where slurmctld has no record of it (measured with 24.11).
# Every connection has a thread, which waits for a message for MessageTimeout: without a bound a user's would take all
# processes of the pod, or of the machine. 256 is the bound of Slurm itself, which a fault of 24.11.5 lets through: with the
# lost ones that is less than a preflight keeps for the daemons (RESERVED).
# Of the bytes of all requests that are being read, half are enough for a block of sbcast --size: 64 MiB.
# With PMIx's other store (gds), jobs write to memory in which slurmstepd keeps pointers to functions.
libraries=$OPEN_AS_USER:$BOUNDED_CONNECTIONS:$KNOWN_MESSAGES:$BOUNDED_HOSTLISTS:$STEP_CLIENTS
printf '%s\n' env "LD_PRELOAD=$libraries" CONNECTIONS_MAX=256 "REQUEST_BYTES_MAX=$((140 << 20))" HOSTLIST_MAX=65536 \
    PMIX_MCA_gds=hash slurmd -D -Z --conf-server "$controller" \
    --conf "$conf Weight=$weight State=DRAIN Reason=\"${not_verified:-$pod_start}\"" > "$SERVICES/slurmd/command-line"

set -- s6-svscan "$SERVICES"
unified || set -- unshare --cgroup "$@"
if $lock_memory; then
    set -- --memlock=unlimited:unlimited setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource "$@"
fi
exec prlimit --nproc="$processes:$processes" "$@"
