/*
 * What an image says of itself, as the importer has written it down in the image's folder: `environment`, its variables
 * with a zero byte after each, `entrypoint`, its words in the same form, and `workdir`. They are the user's files: what they hold is taken for a user's words.
 */
#ifndef JAIL_IMAGE_SETTINGS_H
#define JAIL_IMAGE_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "container.h"
#include "failure.h"

struct image_settings {
    char *variables; /* NULL: none */
    size_t size;
    char *entrypoint; /* NULL: not read */
    size_t entrypoint_size;
    char workdir[PATH_MAX];
};

/* Read them, with the calling process's rights on files, for good; the entry point only if it is to run. Returns 0 or -1. */
int image_settings_read(struct image_settings *settings, const char *folder, bool entrypoint, struct failure *failure);

/* Set the image's variables, but those that the job's win over. */
int image_settings_give(const struct image_settings *settings, const struct container *container,
                        int (*set)(void *job, const char *name, const char *value), void *job, struct failure *failure);

#endif
