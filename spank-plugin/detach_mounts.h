/*
 * Taking away what a container has mounted besides its root: once a view is the root of a process, nothing of it is
 * needed. A way to the old root, should there be one, leads to no claim, no spool and no control groups.
 */
#ifndef JAIL_DETACH_MOUNTS_H
#define JAIL_DETACH_MOUNTS_H

#include <stddef.h>

#include "failure.h"

struct detachable {
    char *points; /* one after another, each with its '\0' */
    size_t size;
};

/* Note all mounts that stand on the root mount of the calling process. Returns 0 or -1; forget in either case. */
int detach_mounts_note(struct detachable *found, struct failure *failure);

/* Detach all that was noted, with what is mounted below; the root directory has to be the one of before. */
int detach_mounts_all(const struct detachable *found, struct failure *failure);

void detach_mounts_forget(struct detachable *found);

#endif
