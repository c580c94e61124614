/*
 * Making a view the root of the calling process, for good.
 */
#ifndef JAIL_ENTER_VIEW_H
#define JAIL_ENTER_VIEW_H

#include "failure.h"

/* Go into a mount namespace of its own that neither sends nor receives mounts. Returns 0 or -1. */
int enter_namespace(struct failure *failure);

/*
 * Make the mount at `root` the root directory, and the working directory. What else was mounted is detached, and open
 * directories are replaced by the new root: none leads out. Returns 0 or -1.
 */
int enter_root(int root, struct failure *failure);

#endif
