"""Slurm on two machines of the lab, with the controller on the first and a worker on either, and their power."""

import re
from collections.abc import Mapping

from tests.machines.lab_slurm import as_user, printed

_BEFORE = """
eval "$(make -s env)"
kubectl cordon n2
"""
"""All pods are on n1 at first, and so the controller and the database stay there."""

_FUNCTIONS = """
# Prints the seconds since $began: at EVENT
at() { echo "$1: $(($(date +%s) - began)) s"; }

slurm() { timeout 60 kubectl exec -n slurm controller-0 -c slurmctld -- "$@"; }

# Succeeds if a node has a state: state NODE PATTERN
state() { slurm sinfo -hn "$1" -o %t | grep -qx "$2"; }

# Succeeds if a job's record matches: job NAME PATTERN
job() { slurm scontrol show job -o | grep "JobName=$1 " | grep -q "$2"; }

# Succeeds if n2 is ready (True) or silent (Unknown): machine STATUS
machine() { kubectl get node n2 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -qx "$1"; }

# Prints a field of the pod cpu-1: pod PATH
pod() { kubectl get pod -n slurm cpu-1 -o "jsonpath={$1}"; }

is_on() { [ "$(pod .spec.nodeName)" = "$1" ] && kubectl wait -n slurm pod/cpu-1 --for=condition=Ready --timeout=1s; }
replaced() { [ "$(pod .metadata.uid)" != "$uid" ]; }
"""

MOVED = """
    kubectl uncordon n2
    kubectl cordon n1
    kubectl delete pod -n slurm cpu-1 --wait=false
    within 600 is_on n2
    kubectl uncordon n1
    within 300 state cpu-1 idle
"""
"""Part of a script that moves cpu-1 to the second machine."""

ON_BOTH = as_user("timeout 300 srun -N2 sh -c 'echo $(hostname) $(cat /proc/sys/kernel/random/boot_id)'")
"""Part of a script that prints the nodes with the numbers of their kernels' boots, for `boots`."""


def with_power(parts: Mapping[str, str]) -> dict[str, str]:
    """Return what the parts of a script print, in which `lab-machine 2` takes n2's power, and `within` bounds a wait.

    Args:
        parts: Parts of the script, which run in this order.

    Raises:
        AssertionError: Something did not happen within its time.
    """
    said = printed({name: _FUNCTIONS + part for name, part in parts.items()}, before=_BEFORE, machines=2)
    assert not [text for text in said.values() if "not within its time" in text], said
    return said


def boots(text: str) -> dict[str, str]:
    """Return the numbers of the boots of kernels, by node."""
    return dict(re.findall(r"^(cpu-\d) (\S+)$", text, re.MULTILINE))
