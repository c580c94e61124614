#!/bin/sh
# Brings the record of a node to what slurmd is about to register with: renew_record.sh NODE CONF WEIGHT OURS
#
# A node that Slurm knows keeps CPUs, their layout and reserved cores, memory, GPUs, features and weight of its record,
# whatever its slurmd registers with when it comes back (measured with 24.11). Features and weight can be changed in a
# record. For the others the record is deleted before slurmd registers, which makes another.
#
# It is not deleted while another has taken the node out of service, or a reservation or a job names it: they would lose
# it. A node that is down as it did not respond is slurmctld's own finding, and over. The exit status is 3 if a record
# that is kept has as many CPUs, in another layout or with other reserved cores.
set -eu
. "${0%/*}/node_record.sh"
node=$1 conf=" $2 " weight=$3 ours=$4

# Prints a value of the record, or what slurmctld writes if the record has none: value KEY DEFAULT
value() {
    case $conf in
        *" $1="*) rest=${conf#*" $1="} && echo "${rest%% *}" ;;
        *) echo "$2" ;;
    esac
}
features=$(value Feature '') cpus=$(value CPUs '') memory=$(value RealMemory '') gres=$(value Gres '(null)')
# Without a layout every CPU is a socket.
sockets=$(value Sockets "$cpus") cores=$(value CoresPerSocket 1) threads=$(value ThreadsPerCore 1)
reserved=$(value CoreSpecCount 0)

taken_out() {
    case $state in
        *+FAIL*) return 0 ;;
        *+DRAIN*) ;;
        DOWN*) [ "$reason" != "Not responding" ] || return 1 ;;
        *) return 1 ;;
    esac
    ! printf '%s\n' "$reason" | grep -Eqx "$ours"
}

named() {
    reserving=$(scontrol -o show reservations 2>&1) || case $reserving in "No reservations"*) ;; *) return 0 ;; esac
    reserving=$(printf '%s\n' "$reserving" | sed -n 's/.* Nodes=\([^ (]*\).*/\1/p')
    wanted=$(squeue -h -t pending -o %n) && used=$(squeue -h -w "$node" -o %N) || return 0
    for list in $reserving $wanted $used; do
        scontrol show hostnames "$list" | grep -qx "$node" && return
    done
    return 1
}

# Succeeds when the record has all of these: has KEY=VALUE...
#
# slurmctld adds to generic resources as a node registers: the GPUs' type to shards, and sockets (measured with 24.11).
# It writes the number of reserved cores only if there are any.
has() {
    record=" $(printf %s "$shown" | tr -s ' \n' ' ' | sed 's/\([=,]shard:\)[^:, ]*:/\1/; s/(S:[^)]*)//g') "
    case $record in *" CoreSpecCount="*) ;; *) record="${record}CoreSpecCount=0 " ;; esac
    for pair; do
        case $record in *" $pair "*) ;; *) return 1 ;; esac
    done
}

until ask || unknown; do sleep 2; done
if ! has CPUTot="$cpus" Sockets="$sockets" CoresPerSocket="$cores" ThreadsPerCore="$threads" \
    CoreSpecCount="$reserved" RealMemory="$memory" Gres="$gres"; then
    unknown || { ! taken_out && ! named && scontrol delete nodename="$node"; }
elif ! has AvailableFeatures="$features" Weight="$weight"; then
    scontrol update nodename="$node" weight="$weight" availablefeatures="$features" activefeatures="$features"
fi || {
    echo "Slurm keeps the record that it has of $node. A restart of this pod tries again." >&2
    ! has CPUTot="$cpus" || has Sockets="$sockets" CoresPerSocket="$cores" ThreadsPerCore="$threads" \
        CoreSpecCount="$reserved" || exit 3
}
