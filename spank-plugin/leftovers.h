/*
 * Leftovers of a user on a node: processes, files, POSIX message queues, System V IPC. A process that has become the user
 * removes them; each call does as much as it can and reports nothing of the rest, which the user may be making meanwhile.
 */
#ifndef JAIL_LEFTOVERS_H
#define JAIL_LEFTOVERS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Look for processes of `user`, entries in the open directories `places`, POSIX message queues among them, and System V
 * IPC: it costs little, as most jobs leave nothing. A directory there in which others may write counts, too: its content
 * is not looked at. Returns true also where a look fails. Takes the right to look at all processes.
 */
bool leftovers_exist(uid_t user, const int places[], int count);

/* Kill all processes that the caller may signal, but itself; wait up to two seconds until they are gone. */
void leftovers_kill(void);

/*
 * Remove what belongs to `user` below the open directory, in directories of others as well, as far as the user gets. What
 * others have put into the user's own directories stays, and so do these. No other mount is entered.
 */
void leftovers_remove_files(int directory, uid_t user);

/* Remove System V shared memory, semaphores and message queues that `user` owns or has made, in the own namespace. */
void leftovers_remove_ipc(uid_t user);

#endif
