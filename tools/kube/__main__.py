"""`python -m tools.kube up|down|status|env`: runs the embedded Kubernetes by itself."""

import argparse
import shlex
import sys

from tools import console
from tools.kube import EmbeddedKubernetes


def main() -> int:
    """Run one command and return its exit code; that of `status` is 0 if every server is well."""
    parser = argparse.ArgumentParser(prog="python -m tools.kube", description="The embedded Kubernetes.")
    parser.add_argument(
        "command",
        choices=("up", "down", "status", "env"),
        help='start it, end it, print its health, print shell settings: eval "$(python -m tools.kube env)"',
    )
    command = parser.parse_args().command
    kubernetes = EmbeddedKubernetes()
    if command == "up":
        kubernetes.up()
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
