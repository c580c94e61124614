/*
 * Attaching mounts at places of a view.
 */
#ifndef JAIL_VIEW_ATTACH_H
#define JAIL_VIEW_ATTACH_H

#include <sys/mount.h>

#include "failure.h"

#define HARMLESS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* What a container's own mounts may have so that nothing leads root astray, and views have not. */
#define CLOSED (MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW)

/*
 * Attach `mount` at `path` in the view and close it; the place is made when it is missing. A negative `mount` fails
 * with errno. Returns 0, or -1.
 */
int view_attach(int root, int mount, const char *path, struct failure *failure);

#endif
