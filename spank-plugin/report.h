/*
 * From a task that could not enter the jail to the slurmstepd that started it, and on to slurmctld: the node is
 * drained when it would fail every job, since a node that fails at once would eat a whole queue.
 */
#ifndef JAIL_REPORT_H
#define JAIL_REPORT_H

#include "failure.h"

/* Prepare, in slurmstepd, the memory that it will share with its tasks. Returns 0, or -1 with errno. */
int report_prepare(void);

/* In a task: tell slurmstepd. */
void report_failure(const struct failure *failure);

/* In slurmstepd, after a task has ended: drain this node if a task has told of a failure that concerns it; once. */
void report_drain(void);

#endif
