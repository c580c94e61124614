/*
 * Jobs that a user has on this node besides one, in the list of slurmctld.
 *
 * The node itself does not know them all: a job between two of its steps, or before the first one, leaves no trace here.
 */
#ifndef JAIL_OTHER_JOBS_H
#define JAIL_OTHER_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* True if the user has a job here besides `job_id` whose processes have not ended, or if slurmctld does not answer. */
bool other_jobs_here(uid_t user, uint32_t job_id);

#endif
