#!/bin/sh
# Removes a node's own cgroups from the machine: unshare --mount remove_cgroups.sh NODE
#
# slurmd leaves them; rmdir takes only what no process is in, and slurmstepd makes again what it misses. In a namespace
# of its own nothing is mounted on them; slurmd's own mounts stay as they are.
. "${0%/*}/layout.sh"

for own in "$CGROUPS"/*/slurm_"$1"; do
    umount "$own"
    mount -o remount,bind,rw "${own%/*}"
    find "$own" -depth -type d -exec rmdir {} \;
done
