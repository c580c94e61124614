/*
 * The views of a login container: one of the active tree for new sessions, and those that open sessions are still in.
 */
#ifndef JAIL_SESSIONS_H
#define JAIL_SESSIONS_H

#include "config.h"
#include "failure.h"

/* Make VIEWS (in_use.h) a directory that sshd accepts above a ChrootDirectory. Returns 0 or -1. */
int sessions_prepare(struct failure *failure);

/* Let VIEWS/active lead to a view of the active tree. Returns 1 when it now does, 0 when it did before, or -1. */
int sessions_follow(const struct jail_config *config, struct failure *failure);

/* Take away views that no process is in any more and that are not for new sessions. Returns 0 or -1. */
int sessions_tidy(struct failure *failure);

#endif
