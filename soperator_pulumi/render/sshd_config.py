"""sshd_config of the login nodes: public keys only, no root, every session in the jail."""

from soperator_pulumi.render import layout
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.spec.cluster import ClusterSpec


def sshd_config(spec: ClusterSpec) -> str:
    """Return sshd_config for OpenSSH 10."""
    session = {
        "SLURM_CONF_SERVER": f"{layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}",
        "SOPERATOR_CLUSTER": spec.name,
        "SOPERATOR_DOCS": spec.login.docs,
    }
    return lines(
        HEADER,
        f"Port {layout.SSH_PORT}",
        f"HostKey {layout.SSH_HOST_KEY}",
        "PidFile none",
        "UseDNS no",
        "",
        "# What sessions see of the active tree. sshd follows the link at each login: a switch is for new sessions.",
        f"ChrootDirectory {layout.ACTIVE_VIEW}",
        "Subsystem sftp internal-sftp",
        "",
        "# Public keys only: those of the spec by a command, as sshd refuses files in a directory that a ConfigMap's",
        "# volume makes, and those in the homes, for users who were added inside the jail.",
        "AuthenticationMethods publickey",
        "PubkeyAuthentication yes",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitEmptyPasswords no",
        "PermitRootLogin no",
        "AuthorizedKeysFile .ssh/authorized_keys",
        f"AuthorizedKeysCommand /usr/bin/cat {layout.SSH_KEYS_DIR}/%u",
        "AuthorizedKeysCommandUser nobody",
        "UsePAM yes",
        "LoginGraceTime 30",
        "",
        "# Behind a gateway many people may come from the same address, and so do the probes: no address is closed,",
        "# but none holds all connections that have not authenticated. A session has up to four addresses of its own.",
        "PerSourcePenalties no",
        "PerSourceMaxStartups 30",
        "PerSourceNetBlockSize 32:64",
        "MaxStartups 150:30:200",
        "",
        "# Load balancers forget connections that are silent for a few minutes.",
        "ClientAliveInterval 60",
        "ClientAliveCountMax 5",
        "",
        "# Ports and agents of people with a shell: forbidding them would hinder, not protect.",
        "AllowTcpForwarding yes",
        "AllowAgentForwarding yes",
        "GatewayPorts no",
        "PermitTunnel no",
        "X11Forwarding no",
        "",
        "AcceptEnv LANG LC_*",
        "PermitUserEnvironment no",
        "PrintMotd no",
        "",
        "# The message of the day is made in the session, of the last two. Of several SetEnv sshd takes the first.",
        f"SetEnv {' '.join(f'{name}={value}' for name, value in session.items())}",
    )
