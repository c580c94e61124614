/*
 * Views that processes of this container have as their root.
 */
#ifndef JAIL_VIEW_USAGE_H
#define JAIL_VIEW_USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "tree.h"

#define VIEWS "/run/jail"   /* VIEWS/<tree>: a view of each tree, VIEWS/active: a link to the one for new sessions */
#define VIEW_USAGE_MAX 64 /* more are refused: trees that a claim keeps are few */

struct view_usage {
    char tree[TREE_NAME_SIZE];
    unsigned int mount; /* the number of the view's root mount */
    bool used;
};

/* Find all views and whether they are used; `views` has room for VIEW_USAGE_MAX. Returns their number, or -1. */
int view_usage_find(struct view_usage views[], struct failure *failure);

#endif
