# shellcheck shell=sh disable=SC2034 # sourced by the other scripts
# Paths, and a port, on which the scripts, the pod's template and the SPANK plugin agree; tests hold them equal.

ANSWERS_PORT=6816
BOUNDED_CONNECTIONS=/opt/slurm/lib/bounded_connections.so
BOUNDED_HOSTLISTS=/opt/slurm/lib/bounded_hostlists.so
CGROUPS=/sys/fs/cgroup
DEVICES=/dev
DRIVER=/run/slurm/driver
FOUND_IMAGES=/run/slurm/found-images
JAIL_BINDS=/run/slurm/jail-binds
JAIL_DIR=/jail
JAIL_OWN=/run/slurm/jail-own
JOB_FILES=/run/slurm/job-files
KNOWN_MESSAGES=/opt/slurm/lib/known_messages.so
LAST_WORDS=/run/termination-log
MESSAGE_QUEUES=/dev/mqueue
NODE_GRES=/run/slurm/gres.conf
OPEN_AS_USER=/opt/slurm/lib/open_as_user.so
PMIX_DIR=/run/slurm/pmix
PROC=/proc
SERVICES=/run/slurm/services
SHARED_MEMORY_DIR=/dev/shm
SPOOL_DIR=/var/spool/slurmd
STEP_CLIENTS=/opt/slurm/lib/step_clients.so
SYS=/sys
