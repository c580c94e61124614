"""`python -m tools.kube up|down|status|env`."""

import argparse
import sys

from tools import console
from tools.kube import EmbeddedKubernetes


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m tools.kube", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "status", "env"])
    command = parser.parse_args().command
    kube = EmbeddedKubernetes()
    if command == "up":
        kube.up()
    elif command == "down":
        kube.down()
    elif command == "env":
        print(f"export KUBECONFIG={kube.kubeconfig}")
        print(f"export PATH={kube.bin_dir}:$PATH")
    return 0


sys.exit(console.run(main))
