/*
 * Cleanup when the last job of a user on a node has ended: processes that got away, files in directories of the node's
 * own, POSIX message queues, System V shared memory, semaphores and message queues (leftovers.h).
 *
 * All is removed by a process with the rights of the user: nothing that is not the user's can be, wherever links lead. No
 * process of the user's can stop or end it. The node takes other jobs meanwhile; steps of this user wait until it is done,
 * which it is when the kernel ends it at the latest.
 */
#ifndef JAIL_USER_CLEANUP_H
#define JAIL_USER_CLEANUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "failure.h"

/* A file for each user, which is locked while what the user has left is being removed. */
#define USER_CLEANUP_LOCKS "/run/slurm/jail-leftovers"

/* The directories that are the node's own, written by the pod as it starts: an absolute path a line. */
#define USER_CLEANUP_DIRECTORIES "/run/slurm/jail-own"

/* Wait until nothing of `user` is being removed here: what a new step makes would go as well. Returns 0 or -1. */
int user_cleanup_await(uid_t user, struct failure *failure);

/*
 * A job of `user` has ended here. Was it the last one, all that the user has left is removed: for USER_CLEANUP_WAIT_SECONDS
 * at most before this returns, and then beside it, for USER_CLEANUP_SECONDS in all. What is not done then stays until the
 * user's next job has ended.
 *
 * `is_last` is asked where there is anything to remove, and only then. Returns 0 or -1.
 */
#define USER_CLEANUP_WAIT_SECONDS 1
#define USER_CLEANUP_SECONDS 30
int user_cleanup_run(uid_t user, bool (*is_last)(uid_t user, void *context), void *context, struct failure *failure);

#endif
