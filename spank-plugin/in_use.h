/*
 * Which views processes of this container have as their root.
 */
#ifndef JAIL_IN_USE_H
#define JAIL_IN_USE_H

#include <stdbool.h>
#include <stddef.h>

#include "tree.h"

#define VIEWS "/run/jail"   /* VIEWS/<tree>: a view of each tree, VIEWS/active: a link to the one for new sessions */
#define IN_USE_MAX_VIEWS 64 /* more are refused: trees that a claim keeps are few */

struct view_use {
    char tree[TREE_NAME_SIZE];
    unsigned int mount; /* the number of the view's root mount */
    bool used;
};

/* Find all views and whether they are used; `views` has room for IN_USE_MAX_VIEWS. Returns their number, or -1. */
int in_use_find(struct view_use views[], struct failure *failure);

#endif
