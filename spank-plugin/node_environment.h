/*
 * Environment variables that a node set gives to its jobs. A file in the view lists them, which every job can read.
 *
 * Slurm's own way, TaskProlog, does not lead into a jail: slurmstepd of 24.11 starts itself once more to run it
 * (src/common/run_command.c), and a jail of another system has none of its libraries.
 */
#ifndef JAIL_NODE_ENVIRONMENT_H
#define JAIL_NODE_ENVIRONMENT_H

#include "failure.h"

#define NODE_ENVIRONMENT "/run/slurm/job-files/environment"

/* Sets a variable that the job does not have. Returns 0 or -1. */
typedef int (*node_environment_set)(void *job, const char *name, const char *value);

/* Set the variables of the file, a NAME=VALUE a line; none where there is no file. Returns 0 or -1. */
int node_environment_give(const char *path, node_environment_set set, void *job, struct failure *failure);

#endif
