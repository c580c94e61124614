/*
 * Whether a user has left anything on a node: a look that costs little, as most jobs leave nothing.
 */
#ifndef JAIL_REMAINS_H
#define JAIL_REMAINS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Look for processes of `user`, entries in the open directories `places`, POSIX message queues among them, and System V
 * IPC. A directory there in which others may write counts, too: what is in it is not looked at. Where it cannot be
 * told, the user has. Takes the right to look at all processes.
 */
bool remains_any(uid_t user, const int places[], int count);

#endif
