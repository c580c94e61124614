/*
 * Whom slurmstepd lets in on the loopback device, by LD_PRELOAD: the user of the step alone.
 *
 * libpmix listens there for the tasks, and believes the user id that a caller states: any user of the node could come as
 * a task of another, read what its tasks exchange, and end the step. The kernel knows whose the caller's socket is.
 */
#ifndef JAIL_STEP_PEERS_H
#define JAIL_STEP_PEERS_H

#include <sys/types.h>

/* Name the user of the step. Until then accept(2) lets in everybody, as slurmd does. */
void step_peers_are_of(uid_t user) __attribute__((weak));

#endif
