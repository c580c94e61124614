"""README's quick start on a machine of the lab, and what commands print there."""

import re
import shlex
from collections.abc import Mapping

from tools.lab.script_machine import run_script
from tools.lab.slurm_machine import MEMORY_MIB, PROCESSORS, several

_FUNCTIONS = """
eval "$(make -s env)"

# Waits for a command to succeed, for at most some seconds: within SECONDS COMMAND
within() {
    end=$(($(date +%s) + $1))
    shift
    until "$@" > /dev/null 2>&1; do
        [ "$(date +%s)" -lt "$end" ] || { echo "not within its time: $*"; return 1; }
        sleep 1
    done
}

# Succeeds if no such process runs: gone COMMAND LINE
gone() { ! pgrep -fx "$*"; }

# Prints the directories of the control groups of a pod: groups UID
groups() { find /sys/fs/cgroup -type d -path "*pod$1*"; }

uid_of() { kubectl get pod -n slurm "$1" -o 'jsonpath={.metadata.uid}'; }
"""


def as_user(command: str) -> str:
    """Return the line of a machine's script that runs a user's command on the login node."""
    return f"make -s ssh CMD={shlex.quote(command)} || true"


def printed(commands: Mapping[str, str], *, before: str = "", machines: int = 1) -> dict[str, str]:
    """Return what the commands print after `make up`, by their names.

    Args:
        commands: Parts of a shell script, which all run on one machine, in this order. One that fails ends only itself.
        before: Part of the script before `make up`. With several machines, Kubernetes runs already.
        machines: Number of machines. The commands run on the first.
    """
    preparation, further = several(machines)
    parts = [f"echo '== {name}'\n(\n{command}\n) || true" for name, command in commands.items()]
    text = run_script(
        "\n".join((preparation, before, "make up", _FUNCTIONS, *parts)),
        memory_mib=MEMORY_MIB,
        processors=PROCESSORS,
        writable=True,
        timeout_seconds=3000,
        further=further,
    )
    found = re.split(r"^== (\w+)$", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))
