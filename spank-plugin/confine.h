/*
 * Rights that a task loses for good: capabilities, new privileges by executing a program, and the system calls that the
 * container's capability SYS_ADMIN has opened in its seccomp profile.
 */
#ifndef JAIL_CONFINE_H
#define JAIL_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"

/* The bit of a capability (CAP_*, below 64) in a set of them. */
#define CAPABILITY(number) (UINT64_C(1) << (number))

/*
 * Confine the calling process and all that it will start. Its permitted capabilities stay: slurmstepd still has to
 * become the user, which ends them.
 *
 * dropped: the capabilities that no program executed from now on can have; ~0 for all.
 * user_namespaces: leave the system calls that make and use user namespaces.
 *
 * Returns 0, or -1. Needs CAP_SETPCAP.
 */
int confine(uint64_t dropped, bool user_namespaces, struct failure *failure);

#endif
