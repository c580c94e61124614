"""The OpenSSH configuration to log in with: `make up` writes it, `make ssh` uses it, so can scp and rsync."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from tools import paths
from tools.chosen_cluster import Target

HOST = "slurm"


@dataclass(frozen=True)
class Login:
    """Whom and where to log in as."""

    user: str
    namespace: str
    host_key: str
    """The login pods' public host key, as a line of authorized_keys."""
    identity: Path
    """The file of the user's private key."""


def config_file(target: Target) -> Path:
    """Return where the configuration for this cluster is."""
    return target.state_dir / "ssh_config"


def write(file: Path, target: Target, login: Login) -> None:
    """Write the configuration, and the known hosts beside it.

    The host key comes from the deployment, so that the first login is checked like every other.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known_hosts = file.with_name(f"{file.name}.known_hosts")
    alias = f"login.{login.namespace}"
    known_hosts.write_text(f"{alias} {login.host_key}\n")
    file.write_text(
        f"Host {HOST}\n"
        f"    HostName {alias}\n"
        f"    HostKeyAlias {alias}\n"
        f"    User {login.user}\n"
        f"    IdentityFile {login.identity}\n"
        f"    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {known_hosts}\n"
        f"    StrictHostKeyChecking yes\n"
        f"    ProxyCommand {_proxy_command(target, login.namespace)}\n"
    )


def _proxy_command(target: Target, namespace: str) -> str:
    words = [
        sys.executable,
        str(paths.ROOT / "tools" / "ssh_proxy.py"),
        "--kubeconfig",
        str(target.kubeconfig),
    ]
    if target.context:
        words += ["--context", target.context]
    # ssh_config(5): a percent sign starts a token.
    return shlex.join([*words, "--namespace", namespace]).replace("%", "%%")
