"""Names, ports and paths on which the files, the pods and the images agree."""

from soperator_pulumi.spec.types import paths

CONTROLLER_HOST = "controller-0"
"""Host name of the pod that runs slurmctld."""

SLURMCTLD_PORT = 6817
SLURMD_PORT = 6818

SRUN_PORTS = (60001, 63000)
"""First and last port on which srun, on login and worker nodes, listens for its tasks' output: bounded, so that a
NetworkPolicy can open them. srun takes a few at a time, so a login node has room for several hundred at once."""

SSH_PORT = 2222
"""sshd's port: above 1024, so that it needs no capability for it."""

STATE_DIR = "/var/spool/slurmctld"
SPOOL_DIR = paths.SPOOL
RUN_DIR = "/run/slurm"

SSH_HOST_KEY = "/etc/ssh-host/ssh_host_ed25519_key"
SSH_KEYS_DIR = "/etc/ssh-keys"

SLURM_UID = 64030
"""uid and gid of slurm in all images, Debian's own."""

HOMES_DIR = paths.HOMES
SHARED_MEMORY_DIR = paths.SHARED_MEMORY
TEMPORARY_DIR = paths.TEMPORARY

JAIL_DIR = "/jail"
"""Where worker and login containers see the jail's volume as a whole."""

HOMES_IN_JAIL = "home"
"""Directory of the jail's volume with the homes."""

TREES_IN_JAIL = "trees"
"""Directory of the jail's volume with the trees, root filesystems."""

JAIL_VIEWS = "/run/jail"
"""Where a login container makes what its sessions see of each tree."""

ACTIVE_VIEW = f"{JAIL_VIEWS}/active"
"""What new sessions enter."""

CLIENT_DIR = "/opt/slurm"
"""Slurm's client programs with all that they need, in images and in the jail."""

SPANK_PLUGIN = f"{CLIENT_DIR}/lib/slurm/spank_jail.so"
"""What moves a job into the jail."""

OPEN_AS_USER = f"{CLIENT_DIR}/lib/open_as_user.so"
"""Library by which slurmd opens files of users: loaded into it before all others."""

JAIL_BINDS = f"{RUN_DIR}/jail-binds"
"""What a worker's pod has to be seen in the jail, an argument of the plugin a line, written by the pod itself."""

JAIL_OWN = f"{RUN_DIR}/jail-own"
"""The directories of a worker's pod that are its own: what a user has left in them goes with the user's last job."""

JAIL_CGROUPS = f"{RUN_DIR}/jail-cgroups"
"""What a job sees at /sys/fs/cgroup where the machine's cgroups are there in a worker's container."""

JAIL_LOGIN = f"{CLIENT_DIR}/sbin/jail-login"
"""What makes the view of a tree for sshd."""

WELCOME = "/etc/profile.d/soperator.sh"
"""The message of the day, in the image of the login nodes and in the jail of their sessions."""

USER_FILES = "/var/lib/extrausers"
"""The user database that libnss-extrausers reads: passwd, group and shadow."""

DECLARED_USERS = "/etc/users"
"""Where the container that merges users sees those of the spec."""

JAIL_TOOLS_DIR = "/.jail-tools"
"""Our Python, brought into whatever image the jail is filled from."""

JAIL_TOOLS = (f"{JAIL_TOOLS_DIR}/bin/python3", "-I", "-m", "jail_tools")
"""The command whose subcommands fill, switch and look after the jail."""

JAIL_BEING_FILLED = "/.jail"
"""Where the container that fills a tree sees the jail's volume: a place that no image has."""

ADMIN_TREE = "/.tree"
"""Where the admin shell sees the active tree as a whole."""


HEADER = "# Rendered by soperator-pulumi from the cluster's spec: a change by hand is undone by the next deployment."
"""First line of every rendered file that has comments. It has no time: the same spec gives the same file."""


def lines(*each: str) -> str:
    """Return a file of these lines."""
    return "\n".join(each) + "\n"
