/*
 * The view: a root tree with all that a job or a session needs mounted in it, and no more.
 *
 *   /                      the tree
 *   /proc                  a new instance that shows a user the own processes only, with what the container's
 *                          runtime masks masked again
 *   /sys                   the container's, read-only
 *   /dev                   the container's devices; with isolation=ipc the message queues of the step
 *   /run                   empty, in memory; in it /run/munge
 *   /usr/local/nvidia      the container's GPU driver, where it has one (view_driver.h)
 *   /opt/slurm, /var/lib/extrausers, /etc/hosts, /etc/resolv.conf     the container's, read-only
 *   bind=...               as configured, at the same place
 *   <spool>                of slurmd's spool, read-only: the configuration, and what is this job's own
 *   PMIX_DIRECTORY         of a job: folders of steps, each its user's alone
 *
 * Nothing in it has set-user-id bits or (but in /dev) devices; programs can be executed in it, wherever they lie:
 * the container's own mounts of the same volumes may be noexec.
 */
#ifndef JAIL_VIEW_H
#define JAIL_VIEW_H

#include <stdint.h>

#include "config.h"
#include "failure.h"

/*
 * In memory, of a size and number of files of its own, and root's: in it slurmstepd makes the folders that PMIx gives to
 * the tasks of a step. A name in a folder of users could be taken by another user beforehand, and lead root elsewhere.
 */
#define PMIX_DIRECTORY "/run/slurm/pmix"

/* The folder with the socket that jobs have at /run/munge. */
#define MUNGE_OF_JOBS "/run/munge/jobs"

struct view {
    const struct jail_config *config;
    int tree;     /* O_PATH, of the root tree */
    int place;    /* O_PATH, where the view is attached; may be the tree itself */
    bool job;     /* whether slurmd's spool is part of it */
    uint32_t job_id;
};

/* Build the view in the calling process's mount namespace. Returns a descriptor of its root, or -1. */
int view_build(const struct view *view, struct failure *failure);

#endif
