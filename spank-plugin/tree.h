/*
 * The root tree that is entered. In the claim (`jail=`):
 *
 *   trees/<tree>   root trees; <tree> is 12 hexadecimal digits
 *   active         symbolic link trees/<tree>: what new jobs and logins enter
 *   jobs/<jobid>   symbolic link trees/<tree>: what a job that has begun stays in, on all of its nodes
 */
#ifndef JAIL_TREE_H
#define JAIL_TREE_H

#include <stdint.h>

#include "failure.h"

#define TREE_NAME_SIZE 13

struct tree {
    char name[TREE_NAME_SIZE];
    int fd; /* O_PATH, of the tree's directory */
};

/* Open the claim at `path`; O_PATH, to be closed by the caller. */
int claim_open(const char *path, struct failure *failure);

/* The active tree's name. A claim without one is a failure. */
int tree_active(int claim, char name[TREE_NAME_SIZE], struct failure *failure);

/* Open a tree by name. It has to be root's, and closed to writes of others. */
int tree_open(int claim, const char *name, struct tree *tree, struct failure *failure);

/*
 * Open the tree of a job. The first task of all records the active one, atomically, and all others follow it.
 * A record that names a tree which is gone (of an earlier job with this number) is replaced.
 */
int tree_of_job(int claim, uint32_t job_id, struct tree *tree, struct failure *failure);

#endif
