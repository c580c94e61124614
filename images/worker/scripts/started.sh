#!/bin/sh
# The startup probe: slurmd answers, and what the pod's own scripts have done to the node is undone:
# started.sh STOP_REASON START_REASON
#
# It fails as long as slurmctld does not answer: whether the node is drained is not known.
. "${0%/*}/node_record.sh"
node=$(hostname)

scontrol show slurmd > /dev/null || exit
ask || { unknown && exit; echo "$shown" >&2; exit 1; }
undrain "$1"
# Slurm sets a node that is DOWN back into service as it registers, unless slurm.conf has another ReturnToService.
# One that was drained as its pod stopped is DOWN with that reason: no drain of a node that is DOWN comes from its pod.
case $state in
    *+FAIL*) ;;
    DOWN*+DRAIN*) [ "$reason" != "$1" ] || scontrol update nodename="$node" state=resume ;;
    DOWN*) [ "$reason" != "$2" ] || scontrol update nodename="$node" state=resume ;;
esac
