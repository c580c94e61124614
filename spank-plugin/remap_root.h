/*
 * The user as root in a container, for package managers: `--container-remap-root`. In a user namespace of the task the
 * user's number is 0, as by `unshare --map-root-user`, which gives no right on anything outside. Calls that change owners
 * and users do nothing there, and succeed: a namespace of one user knows no others.
 */
#ifndef JAIL_REMAP_ROOT_H
#define JAIL_REMAP_ROOT_H

#include "person.h"

/*
 * In a task, as root, on the container's root: start the process that will give the person root's number. The kernel lets
 * a task that has not executed a program not do that itself. Returns 0 or -1.
 */
int remap_root_prepare(const struct person *person, struct failure *failure);

/* Later, as the person: be root, in a namespace. Returns 0 or -1. */
int remap_root_enter(struct failure *failure);

#endif
