/*
 * Paths inside a tree that is not trusted: whatever links it holds, they never lead out of it.
 */
#ifndef JAIL_RESOLVE_IN_ROOT_H
#define JAIL_RESOLVE_IN_ROOT_H

#include <stdbool.h>

/* Open `path` with `root` as the root directory; O_PATH. Returns a descriptor, or -1 with errno. */
int open_in_root(int root, const char *path);

/* The same; what is missing is made: directories 0755, and at the end a directory or an empty file. */
int make_in_root(int root, const char *path, bool directory);

#endif
