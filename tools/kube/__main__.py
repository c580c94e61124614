"""`python -m tools.kube up|down|status|env|machine-kill|machine-start`: runs the embedded Kubernetes alone."""

import argparse
import shlex
import sys

from tools import console
from tools.console import UserError
from tools.kube import EmbeddedKubernetes


def main() -> int:
    """Run one command and return its exit code; for `status`, 0 if every server is healthy."""
    parser = argparse.ArgumentParser(prog="python -m tools.kube", description="The embedded Kubernetes.")
    parser.add_argument(
        "command",
        choices=("up", "down", "status", "env", "machine-kill", "machine-start"),
        help='start it, end it, print its health, print shell settings: eval "$(python -m tools.kube env)"; '
        "end a further machine as a loss of power does, start it again",
    )
    parser.add_argument("--machines", type=int, help="of up: number of machines (default: as many as there are, or 1)")
    parser.add_argument("--number", type=int, help="of machine-kill and machine-start: number of the machine, 2 for n2")
    arguments = parser.parse_args()
    command = arguments.command
    kubernetes = EmbeddedKubernetes()
    if command == "up":
        kubernetes.up(arguments.machines)
    elif command.startswith("machine-"):
        if arguments.number is None:
            raise UserError(f"{command} needs the number of a machine: `make {command} N=2` for n2")
        act = kubernetes.kill_machine if command == "machine-kill" else kubernetes.start_machine
        act(arguments.number)
    elif command == "down":
        kubernetes.down()
    elif command == "status":
        problems = kubernetes.status()
        for name, problem in problems.items():
            print(f"{name:24} {problem or 'well'}")
        return int(any(problems.values()))
    else:
        print(f"export KUBECONFIG={shlex.quote(str(kubernetes.kubeconfig))}")
        print(f"export PATH={shlex.quote(str(kubernetes.bin_dir))}:$PATH")
    return 0


if __name__ == "__main__":
    sys.exit(console.run(main))
