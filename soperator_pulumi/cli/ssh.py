"""`soperator ssh`: runs OpenSSH's client for a cluster through the Kubernetes API, without a route or an open port."""

import argparse
import hashlib
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from soperator_pulumi.cli.any_command import Command, access_in, add_cluster
from soperator_pulumi.cli.pulumi_runs import become
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kubeconfig import client_settings
from soperator_pulumi.spec.login import object_name


@dataclass(frozen=True)
class Login:
    """User and destination of a login."""

    namespace: str
    host: str
    """Host in the configuration."""
    user: str | None = None
    """Default: the user of this machine."""
    host_key: str | None = None
    """Public host key of the login pods, as a line of authorized_keys. Default: the key of the first login, received
    over the authenticated connection to the Kubernetes API."""
    identity: Path | None = None
    """File of the user's private key. Default: OpenSSH's own choice."""
    pool: str | None = None
    """Name in `login.pools`. Default: the login nodes outside the pools."""


def write_config(file: Path, access: Access, *logins: Login) -> None:
    """Write an OpenSSH configuration with a host for every login, and the known hosts in a separate file."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known_hosts = file.with_name(f"{file.name}.known_hosts")
    if keys := [f"{_alias(login)} {login.host_key}\n" for login in logins if login.host_key]:
        known_hosts.write_text("".join(keys))
    file.write_text("\n".join(_host(login, access, known_hosts) for login in logins))


def _host(login: Login, access: Access, known_hosts: Path) -> str:
    lines = [
        f"Host {login.host}",
        f"HostName {_alias(login)}",
        f"HostKeyAlias {_alias(login)}",
        *([f"User {login.user}"] if login.user else []),
        *([f"IdentityFile {login.identity}", "IdentitiesOnly yes"] if login.identity else []),
        f"UserKnownHostsFile {known_hosts}",
        f"StrictHostKeyChecking {'yes' if login.host_key else 'accept-new'}",
        f"ProxyCommand {_proxy_command(access, login)}",
    ]
    return "\n    ".join(lines) + "\n"


def _alias(login: Login) -> str:
    return f"login.{login.namespace}"


def _proxy_command(access: Access, login: Login) -> str:
    words = [sys.executable, "-P", "-m", "soperator_pulumi.cli.ssh_proxy", "--namespace", login.namespace]
    if login.pool:
        words += ["--login", object_name(login.pool)]
    if access.kubeconfig:
        words += ["--kubeconfig", str(Path(access.kubeconfig).expanduser().absolute())]
    if access.context:
        words += ["--context", access.context]
    # ssh_config(5): a percent sign starts a token.
    return shlex.join(words).replace("%", "%%")


def config_file(server: str, name: str) -> Path:
    """Return the path of a configuration, in a separate folder for every Kubernetes cluster."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "soperator-pulumi" / "ssh" / hashlib.sha256(server.encode()).hexdigest()[:12] / name


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_cluster(parser)
    parser.add_argument("--user", "-l", help="user of the cluster (default: the name of this machine's)")
    parser.add_argument("--identity", "-i", metavar="FILE", type=Path, help="private key (default: OpenSSH's choice)")
    parser.add_argument("--pool", metavar="NAME", help="login pool (default: the login nodes outside the pools)")
    parser.add_argument(
        "--host-key",
        metavar="LINE",
        help="public host key, the stack's output login_host_key (default: the first seen)",
    )
    parser.add_argument(
        "--print-config", action="store_true", help="print the configuration file for scp -F and rsync, and end"
    )
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="command to run there; without one, a shell")


def run(given: argparse.Namespace) -> int:
    """Replace this process with OpenSSH's client, which then owns the terminal, signals and exit status."""
    access = access_in(given)
    name = f"{given.namespace}.{given.pool}" if given.pool else given.namespace
    file = config_file(client_settings(access).host, name)
    identity = given.identity.expanduser().absolute() if given.identity else None
    login = Login(given.namespace, given.namespace, given.user, given.host_key, identity, given.pool)
    write_config(file, access, login)
    if given.print_config:
        sys.stdout.write(f"{file}\n")
        return 0
    program = shutil.which("ssh")
    if program is None:
        raise SoperatorError("there is no `ssh` on PATH. Install OpenSSH's client: apt-get install openssh-client")
    return become([program, "-F", str(file), given.namespace, *given.words])


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator ssh -n hpc --user alice 'srun -N2 hostname'",
    statuses={
        0: "done, or the status of the command there",
        2: "wrong use, or no Kubernetes",
        255: "the log-in failed; OpenSSH gives the reason",
    },
)
