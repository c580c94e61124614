/*
 * The user of a job with all that makes up its rights on files.
 */
#ifndef JAIL_PERSON_H
#define JAIL_PERSON_H

#include <stdbool.h>
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

/*
 * Between both, let the process pass over modes, as the owner of an overlay has to: the kernel makes a folder for it that
 * has none. Who uses the overlay is still held to the modes of its files.
 */
int person_override(bool modes, struct failure *failure);

/* Have root's rights on files again, and no further group. */
int person_leave(struct failure *failure);

/* Become the person for good, before a program is executed. */
int person_become(const struct person *person, struct failure *failure);

#endif
