"""sshd_config of the login nodes: public keys only, no root, the keys read from a mounted directory at each login."""

from soperator_pulumi.render import layout
from soperator_pulumi.render.text import HEADER, lines
from soperator_pulumi.spec.cluster import ClusterSpec


def sshd_config(spec: ClusterSpec) -> str:
    """Return sshd_config for OpenSSH 10."""
    del spec  # the same for every cluster so far
    return lines(
        HEADER,
        f"Port {layout.SSH_PORT}",
        f"HostKey {layout.SSH_HOST_KEY}",
        "PidFile none",
        "UseDNS no",
        "",
        "# Public keys only. A command, as sshd refuses files in a directory that a ConfigMap's volume makes.",
        "AuthenticationMethods publickey",
        "PubkeyAuthentication yes",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitEmptyPasswords no",
        "PermitRootLogin no",
        "AuthorizedKeysFile none",
        f"AuthorizedKeysCommand /usr/bin/cat {layout.SSH_KEYS_DIR}/%u",
        "AuthorizedKeysCommandUser nobody",
        "UsePAM yes",
        "LoginGraceTime 60",
        "",
        "# Behind a Service everybody may come from the same address, and so do the probes.",
        "PerSourcePenalties no",
        "MaxStartups 100:30:200",
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
        f"SetEnv SLURM_CONF_SERVER={layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}",
        "Subsystem sftp internal-sftp",
    )
