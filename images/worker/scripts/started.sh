#!/bin/sh
# The startup probe: slurmd answers, and the drain of its own pod's stop is undone: started.sh REASON
#
# It fails as long as slurmctld does not answer: whether the node is drained is not known.
. "${0%/*}/node_record.sh"
node=$(hostname)

scontrol show slurmd > /dev/null || exit
ask || { unknown && exit; echo "$shown" >&2; exit 1; }
undrain "$1"
