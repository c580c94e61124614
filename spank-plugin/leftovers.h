/*
 * What jobs of a user leave on a node when the last of them has ended: processes that got away, files in directories of
 * the node's own, POSIX message queues, System V shared memory, semaphores and message queues.
 *
 * A job is noted from its first step on this node to its epilog. Between two steps of a job there is nothing of Slurm's
 * on the node that would tell of it, and what one step has put into /dev/shm the next one may want.
 *
 * All is removed by a process that has become the user: nothing that is not the user's can be, wherever links lead.
 */
#ifndef JAIL_LEFTOVERS_H
#define JAIL_LEFTOVERS_H

#include <stdint.h>
#include <sys/types.h>

#include "failure.h"

/* Where jobs are noted: a directory for each user, in it a file for each job. */
#define LEFTOVERS_JOBS "/run/slurm/jail-jobs"

/* The directories that are the node's own, written by the pod as it starts: an absolute path a line. */
#define LEFTOVERS_PLACES "/run/slurm/jail-own"

/* Note that a job of `user` is here. While the user's leftovers are being removed it waits. Returns 0 or -1. */
int leftovers_note(uid_t user, uint32_t job_id, struct failure *failure);

/*
 * A job has ended here. Was it the user's last one, all that the user has left is removed, in LEFTOVERS_SECONDS at most:
 * what is not done then stays until the user's next job has ended. Returns 0 or -1.
 */
#define LEFTOVERS_SECONDS 30
int leftovers_remove(uid_t user, uint32_t job_id, struct failure *failure);

#endif
