/*
 * /proc for a view: a new instance, so that a user sees the own processes only (hidepid), and a job with a process
 * namespace of its own sees that one. A container's runtime masks parts of /proc by mounts; all of them are repeated.
 */
#ifndef JAIL_VIEW_PROC_H
#define JAIL_VIEW_PROC_H

#include "failure.h"

/* Attach it at `place` (O_PATH), which is /proc in the view with the root `root`. Returns 0 or -1. */
int view_proc_attach(int root, int place, struct failure *failure);

#endif
