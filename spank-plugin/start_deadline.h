/*
 * A bound on the time in which slurmstepd gets its tasks started. Until then it opens files as the user and holds a lock
 * that Slurm's own bound on steps that do not end (UnkillableStepTimeout) has to take, so that this one never acts: a
 * slurmstepd that hangs in open(2) would keep its node in COMPLETING for good.
 */
#ifndef JAIL_START_DEADLINE_H
#define JAIL_START_DEADLINE_H

#include "failure.h"

#define START_DEADLINE_SECONDS 180

/* Let the kernel kill the calling process after `seconds`, whatever it waits for. Returns 0 or -1. */
int start_deadline_set(int seconds, struct failure *failure);

/* Lift the bound; without effect where there is none. */
void start_deadline_lift(void);

#endif
