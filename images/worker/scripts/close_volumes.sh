# shellcheck shell=sh
# Closes what jobs and users may write to, so that they can neither run nor change anything outside of the jail.

# Of a node: what an MPI library keeps for each rank is some files and a few kilobytes.
PMIX_SIZE=64m
PMIX_FILES=65536

# Options of all volumes in the worker: also of those that are mounted inside a directory of the machine.
CLOSED=nosuid=recursive,nodev=recursive,noexec=recursive

# close OPTIONS PATH
close() {
    mount -o "remount,bind,$1" "$2" && return
    echo "slurmd is not started, as users could run programs in $2 outside of the jail, or change it." >&2
    exit 1
}

# Ends where the container may not mount as the plugin does: no job could enter the jail.
#
# Closing shows nothing: the kernel asks no security module about mount_setattr(2), by which it is done.
needs_to_mount() {
    unshare --mount mount --bind "$LAST_WORDS" "$LAST_WORDS" && return
    echo "slurmd is not started, as its container may not mount, and no job could enter the jail. Where machines have" \
        "AppArmor, set jail.app_armor: unconfined." | tee "$LAST_WORDS" >&2
    exit 1
}

# slurmd gives away, as root, the files into which it writes for a user (sbcast), so what everybody may write to is
# read-only here: devices, which stay usable, with those that the runtime has laid over files of /proc. The file that
# Kubernetes reads at the container's end is root's alone.
close_devices() {
    devices=$(mountpoint -d /dev)
    while read -r _ _ device _ place _; do
        case $place in "$SHARED_MEMORY_DIR" | "$SHARED_MEMORY_DIR"/* | "$MESSAGE_QUEUES") continue ;; esac
        case $device:$place in "$devices":* | *:/dev/*) close ro "$place" ;; esac
    done < "$PROC/self/mountinfo"
    chmod go= "$LAST_WORDS"
    : < "$OPEN_AS_USER" # fails where slurmd could wait in a user's pipe
}

# close_volumes PATH[:ro]...
close_volumes() {
    for volume; do
        case $volume in
            *:ro) close "ro=recursive,$CLOSED" "${volume%:ro}" ;;
            *) close "$CLOSED" "$volume" ;;
        esac
    done
}

# Closes what jobs see, and so all that a user can write to, to links: close_binds bind=PATH[:ro]...
#
# What root opens there could lead to any file of the worker and of the jail. slurmd and slurmstepd follow links that a
# user means in the user's name (open_as_user.c), and jobs have them in their views.
close_binds() {
    for bind in "$JAIL_DIR" "$@"; do
        case $bind in "bind=$JOB_FILES:ro") continue ;; esac # no volume, and root's
        bind=${bind#bind=}
        bind=${bind%:ro}
        close nosymfollow=recursive "$bind"
    done
}

# Gives the pod's own directories in memory a number of files, one for 16 KiB of the size: limit_files PATH...
#
# A file in memory takes a kilobyte of the kernel's, an empty one too, and without a number counts as nothing. A container
# that starts again may find more: then they stay.
limit_files() {
    for directory; do
        [ "$(stat -f -c %T "$directory")" = tmpfs ] || continue
        mount -o "remount,nr_inodes=$(($(stat -f -c '%b*%S' "$directory") / 16384))" "$directory" ||
            echo "$directory keeps the number of files that it may have." >&2
    done
}

# Mounts the folder in which slurmstepd makes those of PMIx: nobody else makes names in it, and what users write into
# theirs has a size. A file takes a kilobyte of memory at least, an empty one too.
mount_pmix() {
    mkdir -p "$PMIX_DIR"
    mount -t tmpfs -o "mode=0711,size=$PMIX_SIZE,nr_inodes=$PMIX_FILES,nosuid,nodev,noexec,nosymfollow" pmix "$PMIX_DIR"
}

# Closes what the runtime has mounted besides, where users may go: a driver's folder has programs.
close_others() {
    while read -r _ _ _ _ place _; do
        case $place in / | /dev | /dev/* | /opt/* | /proc | /proc/* | /sys | /sys/* | /usr/*) continue ;; esac
        close "$CLOSED" "$(printf %b "$place")" # a blank is \040
    done < "$PROC/self/mountinfo"
}
