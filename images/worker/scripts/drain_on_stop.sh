#!/bin/sh
# Drains the node before slurmd is stopped, for at most the pod's grace period: drain_on_stop.sh REASON
#
# A pod can go without Pulumi: somebody deletes it or scales the StatefulSet, or the kubelet restarts its container. So
# it drains its own node before it stops, and undoes exactly that drain when the same node is there again (started.sh).
#
# It does not drain where no job starts as the node is: draining a failed node would bring it back later, and a reason
# that somebody gave would be lost. It returns when no job is on the node. While slurmctld does not answer it asks again;
# when no job runs here either, only for as long as it takes to replace the controller's pod.
. "${0%/*}/layout.sh"
. "${0%/*}/node_record.sh"
node=$(hostname)

heard=$(date +%s)
while :; do
    if ask; then
        heard=$(date +%s)
        case $state in
            *+DRAIN* | *+FAIL* | DOWN*) jobs=$(squeue -h -o %A -w "$node") && [ -z "$jobs" ] && break ;;
            *) scontrol update nodename="$node" state=drain reason="$1" && continue ;;
        esac
    else
        unknown && break
        [ $(($(date +%s) - heard)) -lt 30 ] || grep -qx slurmstepd "$PROC"/[0-9]*/comm 2> /dev/null || break
    fi
    sleep 2
done
exit 0
