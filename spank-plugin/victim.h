/*
 * Who dies when memory is out: the job, and not Slurm.
 *
 * slurmstepd is in the control group of its step, and the kernel takes the largest process. What lies in /tmp and
 * /dev/shm is of no process, so with a job that fills these the largest may be slurmstepd, without which the job never ends.
 */
#ifndef JAIL_VICTIM_H
#define JAIL_VICTIM_H

#include "failure.h"

/*
 * Let the kernel take the calling process, and all that it will start, before any that has not asked for it (proc(5),
 * oom_score_adj). Takes no capability. Returns 0 or -1.
 */
int victim_become(struct failure *failure);

#endif
