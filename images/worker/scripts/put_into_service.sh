#!/bin/sh
# Undrains a new node if no run has done so, while slurmd runs: put_into_service.sh NODE REASON SECONDS
#
# A node that slurmctld does not know registers drained: a run whose question slurmctld answered with "not found" may be
# about to take its pod away. The run that waits for it puts it into service; without one the node does so itself, later.
set -eu
. "${0%/*}/node_record.sh"
node=$1

until ask; do sleep 2; done
sleep "$3"
until { ask && undrain "$2"; } || unknown; do sleep 2; done
