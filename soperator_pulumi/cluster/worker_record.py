"""What a worker's scripts do with the record that slurmctld has of its node.

A node that Slurm knows keeps CPUs, memory, features and weight of its record, whatever its slurmd registers with when
it comes back (measured with 24.11). Features and weight can be changed in a record. For CPUs and memory it is deleted
before slurmd registers, and so made anew.
"""

import shlex

from soperator_pulumi.slurm.drain.reason import Marker, Operation

ASK = """\
node=$(hostname)
ask() {
    shown=$(scontrol show node "$node" 2>&1) || return
    state=$(printf '%s\\n' "$shown" | sed -n 's/^ *State=\\([^ ]*\\).*/\\1/p')
    reason=$(printf '%s\\n' "$shown" | sed -n 's/^ *Reason=\\(.*\\) \\[[^]]*\\]$/\\1/p')
    reason=${reason% : Not responding}
}
unknown() {
    case $shown in *"not found"*) return 0 ;; *) return 1 ;; esac
}
lift() {
    [ "$reason" = "$1" ] || return 0
    case $state in
        *+FAIL*) ;;
        *+DRAIN*) scontrol update nodename="$node" state=undrain reason=none ;;
    esac
}
"""
"""Functions of all scripts: `ask` slurmctld for the record of this node, whether there is none, and `lift` a drain with
exactly this reason.

What was an admin's state of the node besides stays: `resume` would lift it as well. Slurm 24.11 keeps a reason that is
not replaced. slurmctld appends words of its own to the reason of a drained node whose slurmd has been gone for
SlurmdTimeout."""

_RENEW = """\
features=${1#*Feature=} cpus=${1#*CPUs=} memory=${1#*RealMemory=}
features=${features%% *} cpus=${cpus%% *} memory=${memory%% *}
taken_out() {
    case $state in
        *+FAIL*) return 0 ;;
        *+DRAIN*) ;;
        DOWN*) [ "$reason" != "Not responding" ] || return 1 ;;
        *) return 1 ;;
    esac
    ! printf '%s\\n' "$reason" | grep -Eqx "$ours"
}
named() {
    reserved=$(scontrol -o show reservations 2>&1) || case $reserved in "No reservations"*) ;; *) return 0 ;; esac
    reserved=$(printf '%s\\n' "$reserved" | sed -n 's/.* Nodes=\\([^ (]*\\).*/\\1/p')
    wanted=$(squeue -h -t pending -o %n) && used=$(squeue -h -w "$node" -o %N) || return 0
    for list in $reserved $wanted $used; do
        scontrol show hostnames "$list" | grep -qx "$node" && return
    done
    return 1
}
until ask || unknown; do sleep 2; done
case " $(printf %s "$shown" | tr -s ' \\n' ' ') " in
    *" CPUTot=$cpus "*" AvailableFeatures=$features "*" RealMemory=$memory "*" Weight=$weight "*) ;;
    *" CPUTot=$cpus "*" RealMemory=$memory "*)
        scontrol update nodename="$node" weight="$weight" availablefeatures="$features" activefeatures="$features" ;;
    *) unknown || { ! taken_out && ! named && scontrol delete nodename="$node"; } ;;
esac || echo "Slurm goes on with the record that it has of $node. A restart of this pod tries again." >&2
"""


def renew_record(owner: str, controller: str) -> str:
    """Return the part of the start script that brings the record to what slurmd registers with, the script's `$1`.

    It is not deleted while somebody else has taken the node out of service, or a reservation or a job names it: they
    would lose it. That it is down as it did not respond is slurmctld's own finding, and over.

    Args:
        owner: Stack and component that the cluster belongs to.
        controller: Host and port of slurmctld: the commands find Slurm's files there before slurmd has them.
    """
    before = str(Marker(owner, Operation.POD_STOP)).removesuffix(Operation.POD_STOP).replace(".", "[.]")
    of_pods = "|".join(each for each in Operation if each.of_a_pod)
    ours = shlex.quote(f"{before}({of_pods}|[a-z-]+ [0-9a-f]{{6}}( [(]was: .*[)])?)")
    return f"export SLURM_CONF_SERVER={controller}\nours={ours}\n{_RENEW}unset SLURM_CONF_SERVER\n"
