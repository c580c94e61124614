"""Names, ports and paths that files, pods and images share, and the form of rendered files."""

from soperator_pulumi.spec.types import absolute_path

CONTROLLER_HOST = "controller-0"
"""Host name of slurmctld's pod."""

SLURMCTLD_PORT = 6817
SLURMD_PORT = 6818

SRUN_PORTS = (60001, 63000)
"""First and last port of srun on login and worker nodes, for its tasks' output. A NetworkPolicy opens this range. One
srun takes a few ports: a login node has room for several hundred."""

SSH_PORT = 2222
"""Port of sshd, above 1024, which needs no capability."""

STATE_DIR = "/var/spool/slurmctld"
SPOOL_DIR = absolute_path.SPOOL
RUN_DIR = "/run/slurm"

SSH_HOST_KEY = "/etc/ssh-host/ssh_host_ed25519_key"
SSH_KEYS_DIR = "/etc/ssh-keys"

SLURM_UID = 64030
"""uid and gid of slurm in all images: Debian's."""

HOMES_DIR = absolute_path.HOMES
SHARED_MEMORY_DIR = absolute_path.SHARED_MEMORY
TEMPORARY_DIR = absolute_path.TEMPORARY

JAIL_DIR = "/jail"
"""Mount point of the jail's volume in worker and login containers."""

HOMES_IN_JAIL = "home"
"""Directory of the jail's volume with the homes."""

TREES_IN_JAIL = "trees"
"""Directory of the jail's volume with the trees."""

JAIL_VIEWS = "/run/jail"
"""Directory of a login container with the views of trees."""

ACTIVE_VIEW = f"{JAIL_VIEWS}/active"
"""View of new sessions."""

CLIENT_DIR = "/opt/slurm"
"""Slurm's client programs and their libraries, in images and in the jail."""

SPANK_PLUGIN = f"{CLIENT_DIR}/lib/slurm/spank_jail.so"
"""SPANK plugin that moves a job into the jail."""

OPEN_AS_USER = f"{CLIENT_DIR}/lib/open_as_user.so"
"""Library with which slurmd opens files of users, by LD_PRELOAD."""

JAIL_BINDS = f"{RUN_DIR}/jail-binds"
"""Mounts of a worker's pod for the jail, one argument of the plugin a line, written by the pod."""

JAIL_OWN = f"{RUN_DIR}/jail-own"
"""List of a worker pod's own directories, cleared of a user's files after the user's last job."""

JAIL_CGROUPS = f"{RUN_DIR}/jail-cgroups"
"""View of a job at /sys/fs/cgroup, where a worker's container has the machine's cgroups."""

JAIL_LOGIN = f"{CLIENT_DIR}/sbin/jail-login"
"""Program that makes the view of a tree for sshd."""

WELCOME = "/etc/profile.d/soperator.sh"
"""Message of the day, in the image of the login nodes and in their sessions."""

USER_FILES = "/var/lib/extrausers"
"""User database of libnss-extrausers: passwd, group and shadow."""

DECLARED_USERS = "/etc/users"
"""Users of the spec in the container that merges users."""

JAIL_TOOLS_DIR = "/.jail-tools"
"""Our Python, installed in the image from which the jail is filled."""

JAIL_TOOLS = (f"{JAIL_TOOLS_DIR}/bin/python3", "-I", "-m", "jail_tools")
"""Command whose subcommands fill and switch trees, merge users and run the admin shell."""

JAIL_BEING_FILLED = "/.jail"
"""Mount point of the jail's volume in the container that fills a tree: a path that no image has."""

ADMIN_TREE = "/.tree"
"""Mount point of the whole active tree in the admin shell."""


HEADER = "# Rendered by soperator-pulumi from the cluster's spec: a change by hand is undone by the next deployment."
"""First line of every rendered file with comments. Without a time, as the same spec gives the same file."""


def lines(*each: str) -> str:
    """Return a file of these lines."""
    return "\n".join(each) + "\n"
