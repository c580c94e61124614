/*
 * What slurmstepd reads of callers from other machines before it knows their user, by LD_PRELOAD: a short greeting.
 *
 * The plugin for PMIx listens for the slurmstepds of a step's other nodes. Who calls sends a header and then the message that
 * proves the user, and Slurm 24.11 and 26.05 take memory for as many bytes as the header says, up to 4 GiB. So any user who
 * reached the port filled the memory of another user's step until the kernel ended it.
 */
#ifndef JAIL_STEP_CALLERS_H
#define JAIL_STEP_CALLERS_H

#define STEP_CALLERS_GREETING_BYTES 65536 /* of a greeting without its header */
#define STEP_CALLERS_MAX 256              /* that have not greeted; beyond it, the one that called first is cut off */

/* Bound what callers send first. Until then every message is read, as slurmd does. */
void step_callers_are_bounded(void) __attribute__((weak));

/* Note a connection from another machine that was just accepted. */
void step_callers_note(int connection);

#endif
