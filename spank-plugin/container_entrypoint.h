/*
 * The entry point of an image, before a task: it runs with a command that hands its environment back, so that the task
 * starts with the variables that it has set. It runs in the task's process tree, as the user, confined as the task is.
 */
#ifndef JAIL_CONTAINER_ENTRYPOINT_H
#define JAIL_CONTAINER_ENTRYPOINT_H

#include <stdbool.h>

#include "failure.h"
#include "image_settings.h"

#define GIVE_ENVIRONMENT "/opt/slurm/libexec/give-environment"

/*
 * Run the entry point that has been read into `settings`, in the working directory of the calling process; afterwards
 * the variables of `settings` are those that it has left. An image without an entry point changes nothing.
 *
 * program: the command, GIVE_ENVIRONMENT.
 * environment: of the task: NAME=VALUE, ..., NULL.
 * log: let it print to standard error; else its last line is shown only if it fails.
 *
 * Returns 0, or -1 with a failure of the job if it cannot be started, fails, or does not run its command.
 */
int container_entrypoint_run(struct image_settings *settings, char *program, char **environment, bool log,
                             struct failure *failure);

#endif
