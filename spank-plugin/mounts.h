/*
 * Mounts as file descriptors: cloned or made unattached, given their attributes, then attached to a place that is a
 * descriptor too. Nothing is ever mounted on a path that could have changed meanwhile, or is seen half made.
 * Needs Linux 5.14 (mount_setattr with MOUNT_ATTR_NOSYMFOLLOW).
 */
#ifndef JAIL_MOUNTS_H
#define JAIL_MOUNTS_H

#include <stdint.h>

/*
 * Clone the mount at `path` (relative to `directory`, as in openat; "" for `directory` itself), with all that is
 * mounted below it when `recursive`. Its attributes `set` are set and `cleared` are cleared (MOUNT_ATTR_*), on all of
 * them; it gets nothing from, and gives nothing to, where it came from. Returns a descriptor, or -1 with errno.
 */
int mounts_clone(int directory, const char *path, int recursive, uint64_t set, uint64_t cleared);

/* Make a new file system; `options` are name, value, ..., NULL. Returns a descriptor, or -1 with errno. */
int mounts_new(const char *type, const char *const options[], uint64_t attributes);

/* Attach a mount on the place that `target` (O_PATH) is. Returns 0, or -1 with errno. */
int mounts_attach(int mount, int target);

#endif
