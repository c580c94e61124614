"""`make lab`: Slurm on a machine with another kernel (cgroup v2, AppArmor), and a shell on that machine."""

import argparse
import shlex
import sys

from tools import console
from tools.console import UserError, say
from tools.kube.further_machines import MOST
from tools.lab.further_machines import Further
from tools.lab.script_machine import run_on_terminal
from tools.lab.slurm_machine import MEMORY_MIB, PROCESSORS, preparation, several

_SHELL = """
export PS1='lab:\\w# '
echo "This is a machine of the lab, and you are root. Its changes are gone when you leave: exit"
bash --norc || true
"""


def main() -> int:
    """Start the machine, deploy Slurm there, and return the exit code of the command, or 0 after the shell."""
    parser = argparse.ArgumentParser(prog="python -m tools.lab", description=__doc__)
    parser.add_argument("--without-slurm", action="store_true", help="start the machine alone, which takes a second")
    parser.add_argument(
        "--memory-mib", type=_memory, default=MEMORY_MIB, help=f"the machine's memory (default: {MEMORY_MIB})"
    )
    parser.add_argument(
        "--machines", type=int, choices=range(1, MOST + 1), default=1, help="number of machines (default: 1)"
    )
    parser.add_argument("command", nargs="?", default="", help="command to run there; without one, a shell")
    arguments = parser.parse_args()
    if not arguments.command and not sys.stdin.isatty():
        raise UserError("a shell needs a terminal. Give a command: make lab CMD='make ssh CMD=sinfo'")
    if arguments.without_slurm and arguments.machines > 1:
        raise UserError("several machines need their Kubernetes: leave out BARE, or leave out MACHINES")
    if arguments.without_slurm:
        script, further = preparation(), Further()
    else:  # Ctrl-C and a failure lead to the shell, which is to find out why
        script, further = several(arguments.machines)
        script += "make up" if arguments.command else "trap : INT; make up || true"
    say("==> Starting a machine of the lab")
    script += f"\n{shlex.join(['sh', '-c', arguments.command or _SHELL])}\n"
    return run_on_terminal(script, memory_mib=arguments.memory_mib, processors=PROCESSORS, further=further)


def _memory(text: str) -> int:
    smallest = 256
    if not text.isascii() or not text.isdigit() or int(text) < smallest:
        raise argparse.ArgumentTypeError(f"{text} is not a number of MiB from {smallest} on")
    return int(text)


if __name__ == "__main__":
    sys.exit(console.run(main))
