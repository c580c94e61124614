/*
 * Signals to a task that is starting: a copy of slurmstepd, until it executes its program. It is to end by the signals
 * that end a program, as its image can take hours to come.
 */
#ifndef JAIL_START_SIGNALS_H
#define JAIL_START_SIGNALS_H

/* In slurmstepd: share with tasks what start_signals_await needs. Returns 0, or -1 with errno. */
int start_signals_prepare(void);

/*
 * In a task, first of all: let HUP, INT, and TERM end it, and no other signal that slurmstepd handles interrupt it. Its
 * name becomes "starting-task", as proctrack/linuxproc sends no signal, not even KILL, to a process of slurmstepd's name.
 */
void start_signals_accept(void);

/*
 * In slurmstepd, once for a task that it has forked, before it passes signals on: wait until a task accepts them. If one
 * has not within two seconds, as it has ended, no further one is waited for.
 */
void start_signals_await(void);

#endif
