"""`make ssh`: the key pair, the OpenSSH configuration, which scp and rsync take too, and the log-in with both."""

import argparse
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from tools import chosen_cluster, console, deployed_clusters, paths
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError
from tools.kube.debs import tool

HOST = "slurm"
"""Host in the configuration for the only cluster of a stack. Each of several has its own name."""


@dataclass(frozen=True)
class Login:
    """User and place of a log-in."""

    user: str
    namespace: str
    host_key: str
    """Public host key of the login pods, as a line of authorized_keys."""
    identity: Path
    """File of the user's private key."""
    host: str = HOST
    """Host in the configuration."""


def config_file(cluster: ChosenCluster) -> Path:
    """Return the path of the configuration for this cluster."""
    return cluster.state_dir / "ssh_config"


def write_config(file: Path, cluster: ChosenCluster, *logins: Login) -> None:
    """Write the configuration with a host for each log-in, and the known hosts beside it.

    The host key comes from the deployment, so that the first login is checked like every other.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known_hosts = file.with_name(f"{file.name}.known_hosts")
    known_hosts.write_text("".join(f"{_alias(login)} {login.host_key}\n" for login in logins))
    file.write_text("\n".join(_host(login, cluster, known_hosts) for login in logins))


def _host(login: Login, cluster: ChosenCluster, known_hosts: Path) -> str:
    return (
        f"Host {login.host}\n"
        f"    HostName {_alias(login)}\n"
        f"    HostKeyAlias {_alias(login)}\n"
        f"    User {login.user}\n"
        f"    IdentityFile {login.identity}\n"
        f"    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {known_hosts}\n"
        f"    StrictHostKeyChecking yes\n"
        f"    ProxyCommand {_proxy_command(cluster, login.namespace)}\n"
    )


def _alias(login: Login) -> str:
    return f"login.{login.namespace}"


def hosts(file: Path) -> list[str]:
    """Return the hosts of a configuration."""
    return re.findall(r"(?m)^Host (\S+)$", file.read_text())


def _proxy_command(cluster: ChosenCluster, namespace: str) -> str:
    words = [sys.executable, str(paths.ROOT / "tools" / "ssh_proxy.py"), "--kubeconfig", str(cluster.kubeconfig)]
    if cluster.context:
        words += ["--context", cluster.context]
    # ssh_config(5): a percent sign starts a token.
    return shlex.join([*words, "--namespace", namespace]).replace("%", "%%")


def private_key_file() -> Path:
    """Return the file (mode 0600) of this machine's private key, outside the tree; made if missing."""
    file = paths.state_dir() / "ssh" / "id_ed25519"
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = Ed25519PrivateKey.generate()
        whole = file.with_suffix(".new")
        whole.touch(mode=0o600)
        whole.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        whole.replace(file)
    return file


def public_key() -> str:
    """Return the public key as one line of authorized_keys (sshd(8))."""
    key = load_ssh_private_key(private_key_file().read_bytes(), password=None)
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return f"{line} make-ssh"


def main() -> int:
    """Become OpenSSH's client, which then owns terminal, signals and exit code."""
    parser = argparse.ArgumentParser(description="A shell on the login node, or one command there.")
    parser.add_argument("--cluster", help="name of one of several clusters of the stack")
    parser.add_argument("command", nargs="?", default="", help="command to run there; without one, a shell")
    arguments = parser.parse_args()
    config = config_file(chosen_cluster.choose())
    if not config.exists():
        raise UserError("There is no cluster to log in to. Start one: make up")
    host = deployed_clusters.chosen(hosts(config), arguments.cluster, "make ssh")
    ssh = tool("ssh")
    words = ["ssh", "-F", str(config), host, *([arguments.command] if arguments.command else [])]
    os.execve(ssh.path, words, {**os.environ, **ssh.environment})  # noqa: S606 - the shell is at the other end


if __name__ == "__main__":
    sys.exit(console.run(main))
