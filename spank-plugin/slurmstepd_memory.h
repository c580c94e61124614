/*
 * Memory for slurmstepd when its job's is out: without it nobody reports the end of the job.
 *
 * slurmstepd is in the memory cgroup of its step, and counts to it. What a job has written into /tmp and /dev/shm stays
 * when the kernel has killed all of its processes for it, and slurmstepd would be the next. So the step gets a little less
 * than the job, and slurmstepd goes up into the job's cgroup, where that little is left for it.
 *
 * cgroup v1 only. With v2 slurmstepd is beside its tasks, as Slurm has it, below the limit of its step.
 */
#ifndef JAIL_SLURMSTEPD_MEMORY_H
#define JAIL_SLURMSTEPD_MEMORY_H

#include <stdint.h>

#include "failure.h"

/* A job of less than eight times as much gives an eighth. */
#define SLURMSTEPD_MEMORY_BYTES (8ULL * 1024 * 1024)

/*
 * In slurmstepd, whose tasks wait to start: make room, if the step has a limit. `cgroups` is where the hierarchies of
 * cgroup v1 are mounted. Returns 0, or -1 where the step could not be moved; the job runs all the same.
 */
int slurmstepd_memory_reserve(const char *cgroups, uint32_t job_id, struct failure *failure);

#endif
