/*
 * Descriptors that a task inherits. slurmstepd opens a job's files on the worker's own root, as the user, before any hook
 * of a plugin runs, and makes them the task's standard input, output and error after the task is in the view. So they are
 * looked at twice: as root before the view is entered, and as the user when nothing but the program's start is left.
 */
#ifndef JAIL_DESCRIPTORS_H
#define JAIL_DESCRIPTORS_H

#include <stddef.h>

#include "config.h"
#include "failure.h"

/* The mounts of the container that a view shows too, by their numbers. */
struct shared_mounts {
    unsigned int *numbers;
    size_t count;
};

/* Note the mounts at the binds and below, in the mount namespace in which job files are opened. Returns 0 or -1. */
int descriptors_note(struct shared_mounts *shared, const struct jail_config *config, struct failure *failure);

/*
 * Replace every open directory by the root directory, which has to be the view's: whatever leads out of it is gone, not
 * only closed at the next exec, as slurmstepd copies descriptors. Returns 0 or -1.
 */
int descriptors_replace_directories(struct failure *failure);

/*
 * Refuse standard input, output or error that is neither a file of a shared mount, nor a pipe or a socket of Slurm's,
 * nor a terminal, nor /dev/null; close what else would be inherited and is none of these. When standard error is refused,
 * it becomes standard output, or where that is refused too /dev/null. Returns 0 or -1, and then the failure is the job's.
 */
int descriptors_check(struct shared_mounts *shared, struct failure *failure);

#endif
