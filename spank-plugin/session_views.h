/*
 * The views of a login container: one of the active tree for new sessions, and those that open sessions are still in.
 */
#ifndef JAIL_SESSION_VIEWS_H
#define JAIL_SESSION_VIEWS_H

#include "config.h"
#include "failure.h"

/* Make VIEWS (view_usage.h) a directory that sshd accepts above a ChrootDirectory. Returns 0 or -1. */
int session_views_prepare(struct failure *failure);

/* Let VIEWS/active lead to a view of the active tree. Returns 1 when it now does, 0 when it did before, or -1. */
int session_views_follow(const struct jail_config *config, struct failure *failure);

/* Take away views that no process is in any more and that are not for new sessions. Returns 0 or -1. */
int session_views_tidy(struct failure *failure);

#endif
