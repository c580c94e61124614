/*
 * Remove what is of the user that the calling process is: each call does as much as it can and says nothing of the rest,
 * which the user may be making at the same time.
 */
#ifndef JAIL_LEFTOVERS_H
#define JAIL_LEFTOVERS_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/* List an open directory, from its beginning; NULL where it cannot be. */
DIR *leftovers_list(int directory);

/* Kill all processes that the caller may signal, but itself; wait up to two seconds until they are gone. */
void leftovers_kill(void);

/*
 * Remove what belongs to `user` below the open directory, in directories of others as well, as far as the user gets. What
 * others have put into the user's own directories stays, and so do these. No other mount is entered.
 */
void leftovers_remove_files(int directory, uid_t user);

/*
 * Find System V shared memory, semaphores and message queues that `user` owns or has made, in the own namespace, and
 * remove them where `remove` is set. Returns whether there were any.
 */
bool leftovers_ipc(uid_t user, bool remove);

#endif
