# shellcheck shell=sh disable=SC2154 # each script that sources this sets $node
# The record that slurmctld has of $node.

# Asks slurmctld; sets $shown, and on success $state and $reason.
#
# slurmctld appends words of its own to the reason of a drained node whose slurmd has been gone for SlurmdTimeout.
ask() {
    shown=$(scontrol show node "$node" 2>&1) || return
    state=$(printf '%s\n' "$shown" | sed -n 's/^ *State=\([^ ]*\).*/\1/p')
    reason=$(printf '%s\n' "$shown" | sed -n 's/^ *Reason=\(.*\) \[[^]]*\]$/\1/p')
    reason=${reason% : Not responding}
}

# Succeeds when slurmctld has answered that it does not know the node.
unknown() {
    case $shown in *"not found"*) return 0 ;; *) return 1 ;; esac
}

# Prints a node's configuration with the layout of its CPUs in the record: in_recorded_layout CONF
in_recorded_layout() {
    layout=$(printf '%s\n' "$shown" | tr -s ' ' '\n' | grep -E '^(Sockets|CoresPerSocket|ThreadsPerCore|CoreSpecCount)=' | tr '\n' ' ')
    printf '%s\n' "$1" | sed -E "s/ (Sockets|CoresPerSocket|ThreadsPerCore|CoreSpecCount)=[0-9]+//g; s/(CPUs=[0-9]+)/\1 ${layout% }/"
}

# Undrains the node if its drain has exactly this reason: undrain REASON
#
# The state that an admin gave the node besides stays: `resume` would lift it as well. Slurm 24.11 keeps a reason that is
# not replaced.
undrain() {
    [ "$reason" = "$1" ] || return 0
    case $state in
        *+FAIL*) ;;
        *+DRAIN*) scontrol update nodename="$node" state=undrain reason=none ;;
    esac
}

# Has slurmctld end, or requeue, the jobs that an earlier container of the pod had: end_lost_jobs REASON
#
# By itself Slurm ends none that began in the 20 s before slurmd registers again, nor any of srun, and shows them running
# until their time limit (measured with 24.11.5). A node that is DOWN has no jobs. Registering ends that state, and
# the startup probe does if slurm.conf has another ReturnToService. Whoever has drained the node finds their reason.
end_lost_jobs() {
    until ask || unknown; do sleep 2; done
    ! unknown && lost=$(squeue -h -w "$node" -t running,suspended -o %A) && [ -n "$lost" ] || return 0
    case $state in *+DRAIN* | *+FAIL*) lost_by=${reason:-$1} ;; *) lost_by=$1 ;; esac
    scontrol update nodename="$node" state=down reason="$lost_by"
}
