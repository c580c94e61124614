/*
 * Signals to a task that is starting: a copy of slurmstepd, until it executes its program. It is to end by the signals
 * that end a program, as its image can take hours to come.
 */
#ifndef JAIL_START_SIGNALS_H
#define JAIL_START_SIGNALS_H

/*
 * Let HUP, INT, and TERM end the calling process, and no other signal that slurmstepd handles interrupt it. Its name
 * becomes "starting-task", as proctrack/linuxproc sends no signal, not even KILL, to a process that has slurmstepd's.
 */
void start_signals_accept(void);

#endif
