/*
 * Saving a container as a file when a task has ended. A program (images/containers) waits for that from the task's start
 * on, as the user, confined and among the job's processes: so the job's memory and its end bound it, and no root is at
 * work for a user. slurmstepd waits for it with the step's end.
 */
#ifndef JAIL_IMAGE_SAVE_H
#define JAIL_IMAGE_SAVE_H

#include <stdbool.h>

#include "image_import.h"

#define SAVER "/usr/lib/soperator/containers/save-image"

/* Prepare, in slurmstepd, what it hears from the program, and the task from it. Returns 0, or -1 with errno. */
int image_save_prepare(void);

/*
 * In slurmstepd, when Slurm tracks the process of the task that saves: let it start the program, which is then tracked, too.
 * Returns 0, or -1 with errno.
 */
int image_save_track(void);

/*
 * In a task, on the worker's root, when it is tracked: start the program, and wait until it has looked at `path`.
 *
 * folder: of the image or of the named container, in the jail: with its settings.
 *
 * Returns 0, or -1.
 */
int image_save_start(const struct image_import *import, const char *folder, const char *path, struct failure *failure);

/* In a task: give it the container's root, a mount. It saves its files, without what is mounted in it, when this process ends. */
int image_save_give(int root, struct failure *failure);

/* In a task, when its own program is about to start: without this the program saves nothing, and the former file stays. */
void image_save_go(void);

/* In slurmstepd, when that task has ended: pass on what the program says until it has ended, too. */
void image_save_await(void (*say)(const char *line));

#endif
