#!/bin/sh
# Brings the record of a node to what slurmd is about to register with: renew_record.sh NODE CONF WEIGHT OURS
#
# A node that Slurm knows keeps CPUs, memory, features and weight of its record, whatever its slurmd registers with when
# it comes back (measured with 24.11). Features and weight can be changed in a record. For CPUs and memory the record is
# deleted before slurmd registers, which makes another.
#
# It is not deleted while somebody else has taken the node out of service, or a reservation or a job names it: they
# would lose it. A node that is down as it did not respond is slurmctld's own finding, and over.
set -eu
. "${0%/*}/node_record.sh"
node=$1 weight=$3 ours=$4
features=${2#*Feature=} cpus=${2#*CPUs=} memory=${2#*RealMemory=}
features=${features%% *} cpus=${cpus%% *} memory=${memory%% *}

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
    reserved=$(scontrol -o show reservations 2>&1) || case $reserved in "No reservations"*) ;; *) return 0 ;; esac
    reserved=$(printf '%s\n' "$reserved" | sed -n 's/.* Nodes=\([^ (]*\).*/\1/p')
    wanted=$(squeue -h -t pending -o %n) && used=$(squeue -h -w "$node" -o %N) || return 0
    for list in $reserved $wanted $used; do
        scontrol show hostnames "$list" | grep -qx "$node" && return
    done
    return 1
}

until ask || unknown; do sleep 2; done
case " $(printf %s "$shown" | tr -s ' \n' ' ') " in
    *" CPUTot=$cpus "*" AvailableFeatures=$features "*" RealMemory=$memory "*" Weight=$weight "*) ;;
    *" CPUTot=$cpus "*" RealMemory=$memory "*)
        scontrol update nodename="$node" weight="$weight" availablefeatures="$features" activefeatures="$features" ;;
    *) unknown || { ! taken_out && ! named && scontrol delete nodename="$node"; } ;;
esac || echo "Slurm keeps the record that it has of $node. A restart of this pod tries again." >&2
