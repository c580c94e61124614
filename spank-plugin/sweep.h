/*
 * Remove what is of the user that the calling process is: each call does as much as it can and says nothing of the rest,
 * which the user may be making at the same time.
 */
#ifndef JAIL_SWEEP_H
#define JAIL_SWEEP_H

#include <sys/types.h>

/* Kill all processes that the caller may signal, but itself; wait up to two seconds until they are gone. */
void sweep_processes(void);

/* Remove entries of the open directory that belong to `user`, with all that is in them on the same file system. */
void sweep_directory(int directory, uid_t user);

/* Remove System V shared memory, semaphores and message queues that `user` owns or has made, in the own namespace. */
void sweep_ipc(uid_t user);

#endif
