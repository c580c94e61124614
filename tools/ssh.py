"""`make ssh`: the key pair, the OpenSSH configuration, which scp and rsync also accept, and the login with both."""

import argparse
import os
import re
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from soperator_pulumi.whole_files import write_whole
from tools import chosen_cluster, console, deployed_clusters, paths
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError
from tools.kube.debs import tool

HOST = "slurm"
"""Host name in the configuration for the only cluster of a stack. If there are several, every one has its own name."""

DEFAULT_STACK = "local"
"""Stack of a `make` command that names none."""

_CONFIG = "ssh_config"


def config_file(cluster: ChosenCluster, stack: str) -> Path:
    """Return the path of the configuration for a stack on this Kubernetes."""
    return cluster.state_dir / (_CONFIG if stack == DEFAULT_STACK else f"{_CONFIG}.{stack}")


def hosts(file: Path) -> list[str]:
    """Return the hosts of a configuration."""
    return re.findall(r"(?m)^Host (\S+)$", file.read_text())


def private_key_file() -> Path:
    """Return the file (mode 0600) of this machine's private key, outside the tree; it is created if missing."""
    file = paths.state_dir() / "ssh" / "id_ed25519"
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = Ed25519PrivateKey.generate()
        write_whole(file, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return file


def public_key() -> str:
    """Return the public key as one line of authorized_keys (sshd(8))."""
    key = load_ssh_private_key(private_key_file().read_bytes(), password=None)
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return f"{line} make-ssh"


def main() -> int:
    """Replace this process with OpenSSH's client, which then owns the terminal, signals and exit code."""
    parser = argparse.ArgumentParser(description="A shell on the login node, or one command there.")
    parser.add_argument("--stack", default=DEFAULT_STACK, help="name of stacks/Pulumi.<stack>.yaml (default: local)")
    parser.add_argument("--cluster", help="name of one of several clusters of the stack")
    parser.add_argument("command", nargs="?", default="", help="command to run there; without one, a shell")
    arguments = parser.parse_args()
    config = config_file(chosen_cluster.choose(), arguments.stack)
    if not config.exists():
        others = sorted({file.name.split(".")[1] for file in config.parent.glob(f"{_CONFIG}.*")} - {"known_hosts"})
        deployed = f", or take one of another stack: make ssh STACK={' or '.join(others)}" if others else ""
        raise UserError(f"There is no cluster to log in to. Start one: make up{deployed}")
    host = deployed_clusters.chosen(hosts(config), arguments.cluster, "make ssh")
    ssh = tool("ssh")
    words = ["ssh", "-F", str(config), host, *([arguments.command] if arguments.command else [])]
    os.execve(ssh.path, words, {**os.environ, **ssh.environment})  # noqa: S606 - the shell is at the other end


if __name__ == "__main__":
    sys.exit(console.run(main))
