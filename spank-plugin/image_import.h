/*
 * The image of a container, brought into the user's own store in the jail by a program of this image (the importer:
 * images/containers), which runs with the user's rights alone: confined as a task is, on a root with the programs of the
 * worker's image, the user's files and the network. A registry that means harm has what the user has.
 */
#ifndef JAIL_IMAGE_IMPORT_H
#define JAIL_IMAGE_IMPORT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "failure.h"
#include "person.h"

#define IMPORTER "/usr/lib/soperator/containers/import-image"
#define IMPORTER_SETTINGS "/etc/soperator/health/job_containers.json" /* of the admin */

/* Returns a descriptor of the root of a job's view of the jail, in a namespace of its own; or -1. */
typedef int (*image_open_jail)(void *job, struct failure *failure);

struct image_import {
    const struct jail_config *config;
    const struct person *person;
    char *image;             /* as the user has written it; "": that of the name */
    char *name, *name_flag;  /* of a named container (container.h); "": none */
    const char *directory;   /* from which a relative path counts */
    uint32_t job_id;         /* all of its nodes get the same image */
    char *const *variables;  /* NAME=VALUE, ..., NULL: of the job, for the importer */
    image_open_jail open_jail;
    void *job;
    void (*say)(const char *line); /* tells the user how far it is */
};

/*
 * Prepare, in slurmstepd, the memory by which one task of a node imports for all of them, and the socket that keeps the
 * image from being removed as long as slurmstepd runs. Returns 0, or -1 with errno.
 */
int image_import_prepare(void);

/*
 * Bring the image, or make or find the named container, or wait until another task of this step has done so; its folder in the jail is put into `folder`.
 * A jail that cannot be opened concerns what it concerns for all jobs; whatever else fails concerns this job alone.
 * Returns 0 or -1.
 */
int image_import(const struct image_import *import, char folder[PATH_MAX], struct failure *failure);

/*
 * Become a program of this image with the user's rights alone, on the importer's root, in a process of its own. It gets
 * `input` for its standard input and `output` for the others, and is killed when `parent`, which has forked it, ends
 * (0: it goes on). Returns -1 only.
 */
int image_program_become(const struct image_import *import, char *const program[], int input, int output, pid_t parent,
                         struct failure *failure);

/* Replace what a terminal may take for a command in a line of such a program. */
void image_program_blot(char *line);

#endif
