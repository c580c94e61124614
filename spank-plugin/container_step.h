/*
 * Containers between Slurm and the rest: options in Slurm's table, variables and rights of the job, the order of a start.
 */
#ifndef JAIL_CONTAINER_STEP_H
#define JAIL_CONTAINER_STEP_H

#include <limits.h>
#include <slurm/spank.h>
#include <stdbool.h>

#include "config.h"
#include "failure.h"
#include "image_import.h"

/* In srun, sbatch, salloc and slurmstepd: make the options known. */
int container_step_register(spank_t spank, struct failure *failure);

/* In srun, sbatch and salloc: refuse what cannot be, before there is a job. */
int container_step_check(struct failure *failure);

/* In slurmstepd: find out whether its tasks want a container, and of whom they are. */
int container_step_prepare(spank_t spank, const struct jail_config *config, struct failure *failure);

/* In slurmstepd, when Slurm tracks a task's process. */
int container_step_track(spank_t spank, struct failure *failure);

/*
 * In a task: say, once a step, that the cluster has no containers for the image that a variable names. A line in a
 * user's .bashrc would otherwise fail all jobs; only an option asks for this very job.
 */
void container_step_warn(spank_t spank);

/* True if the step's tasks start in a container. */
bool container_step_wanted(void);

/* In a task, on the worker's root: bring the image. */
int container_step_import(spank_t spank, const struct jail_config *config, const char *directory,
                          image_open_jail open_jail, void *job, struct failure *failure);

/* In a task that has entered the jail: go on into the container. */
int container_step_enter(const struct jail_config *config, const char *directory, struct failure *failure);

/* In a task that is there, and confined: start what needs root's rights before the task becomes the user. */
int container_step_confined(struct failure *failure);

/* In a task, as the user: set the image's variables, and find the working directory. */
int container_step_settle(int (*set)(void *job, const char *name, const char *value), void *job, char directory[PATH_MAX],
                          struct failure *failure);

/*
 * In a task, as the user, in its working directory, when nothing else is left to do: become root in a namespace, and
 * run the image's entry point, if the job wants that. From now on the container is worth saving.
 */
int container_step_begin(spank_t spank, int (*set)(void *job, const char *name, const char *value), struct failure *failure);

/* In slurmstepd, when a task has ended: wait until its container is saved, if it is. */
void container_step_end_task(spank_t spank);

#endif
