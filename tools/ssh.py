"""`make ssh`: a shell on the login node, or one command there."""

import argparse
import os
import sys

from tools import chosen_cluster, console, ssh_config
from tools.console import UserError
from tools.kube.debs import tool


def main() -> int:
    """Become OpenSSH's client, so that terminal, signals and exit code are its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", default="", help="what to run there; a shell when left out")
    command = parser.parse_args().command
    config = ssh_config.config_file(chosen_cluster.choose())
    if not config.exists():
        raise UserError("There is no cluster to log in to. Start one: make up")
    ssh = tool("ssh")
    words = ["ssh", "-F", str(config), ssh_config.HOST, *([command] if command else [])]
    os.execve(ssh.path, words, {**os.environ, **ssh.environment})  # noqa: S606 - the shell is at the other end


if __name__ == "__main__":
    sys.exit(console.run(main))
