"""Names, ports and paths on which the files, the pods and the images agree."""

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
SPOOL_DIR = "/var/spool/slurmd"
RUN_DIR = "/run/slurm"

SSH_HOST_KEY = "/etc/ssh-host/ssh_host_ed25519_key"
SSH_KEYS_DIR = "/etc/ssh-keys"

SLURM_UID = 64030
"""uid and gid of slurm in all images, Debian's own."""
