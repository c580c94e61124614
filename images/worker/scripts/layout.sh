# shellcheck shell=sh disable=SC2034 # sourced by the other scripts
# Paths on which the scripts, the pod's template and the SPANK plugin agree; tests hold them equal.

CGROUPS=/sys/fs/cgroup
JAIL_BINDS=/run/slurm/jail-binds
JAIL_CGROUPS=/run/slurm/jail-cgroups
JAIL_OWN=/run/slurm/jail-own
LAST_WORDS=/run/termination-log
MESSAGE_QUEUES=/dev/mqueue
OPEN_AS_USER=/opt/slurm/lib/open_as_user.so
PROC=/proc
SHARED_MEMORY_DIR=/dev/shm
