/*
 * The user of a job with all that makes up its rights on files.
 */
#ifndef JAIL_PERSON_H
#define JAIL_PERSON_H

#include <sys/types.h>

#include "failure.h"

#define PERSON_MAX_GROUPS 256

struct person {
    uid_t user;
    gid_t group;
    gid_t groups[PERSON_MAX_GROUPS];
    int group_count;
    char name[256];
    char home[512];
};

/* Take the calling process's rights on files for the person's until person_leave; other capabilities stay. */
int person_enter(const struct person *person, struct failure *failure);

enum person_right {
    PERSON_NOTHING,
    PERSON_MODES,            /* pass over modes */
    PERSON_MODES_AND_OWNERS, /* and give files away, and change those of others */
};

/*
 * Between both, lend the process a right, as the owner of an overlay has to have it: the kernel makes a folder for it that
 * has no mode, and copies files with their owners. Who uses the overlay is still held to the modes of its files.
 */
int person_override(enum person_right right, struct failure *failure);

/* Have root's rights on files again, and no further group. */
int person_leave(struct failure *failure);

/* Become the person for good, before a program is executed. */
int person_become(const struct person *person, struct failure *failure);

#endif
