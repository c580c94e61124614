"""`make ssh`: a shell on the login node, or one command there."""

import argparse
import os
import sys

from tools import console, ssh_config, target
from tools.console import UserError


def main() -> int:
    """Become OpenSSH's client, so that terminal, signals and exit code are its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", default="", help="what to run there; a shell when left out")
    command = parser.parse_args().command
    config = ssh_config.config_file(target.choose())
    if not config.exists():
        raise UserError("There is no cluster to log in to. Start one: make up")
    words = ["ssh", "-F", str(config), ssh_config.HOST]
    os.execvp("ssh", [*words, command] if command else words)  # noqa: S606 - ssh parses no shell syntax here


if __name__ == "__main__":
    sys.exit(console.run(main))
