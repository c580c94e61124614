/*
 * Memory for slurmstepd when its job's is out: without it nobody reports the end of the job.
 *
 * What a job has written into /tmp and /dev/shm stays in memory when the kernel has killed all of its processes, and
 * slurmstepd would be the next. So the step's tasks get a little less than the job, and that little is left for
 * slurmstepd: with cgroup v1 it is in the cgroup of its step, and goes up into the job's. With v2 it is next to the
 * cgroup of the tasks, for which Slurm sets no limit of its own (measured with 24.11.5).
 *
 * Several steps can fill their job's memory all the same. The kernel then kills the process with the highest score, which
 * is that of its memory alone, and a slurmstepd is larger than a shell. So tasks have a higher score.
 */
#ifndef JAIL_SLURMSTEPD_MEMORY_H
#define JAIL_SLURMSTEPD_MEMORY_H

#include <stdint.h>

#include "failure.h"

/* A job of less than eight times as much gives an eighth. */
#define SLURMSTEPD_MEMORY_BYTES (8ULL * 1024 * 1024)

/*
 * In slurmstepd, whose tasks wait to start: make room, if the step has a limit. `cgroups` is where cgroups are mounted,
 * and `cgroups_of_process` the file that names those of this process. Returns 0, or -1 if there is no room; the job runs
 * all the same.
 */
int slurmstepd_memory_reserve(const char *cgroups, const char *cgroups_of_process, uint32_t job_id,
                              struct failure *failure);

/* In thousandths of the job's memory. */
#define TASK_OOM_SCORE 200

/* In slurmstepd, with the file of its oom_score_adj. Returns 0 or -1. */
int slurmstepd_memory_read_score(const char *of_slurmstepd, int *score, struct failure *failure);

/*
 * In a task, with slurmstepd's score and the file of its own: have the kernel kill it before slurmstepd, which may not
 * lower its own score without CAP_SYS_RESOURCE. Returns 0 or -1; the job runs all the same.
 */
int slurmstepd_memory_offer_task(int score, const char *of_task, struct failure *failure);

#endif
