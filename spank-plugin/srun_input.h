/*
 * The option --input of srun: two of its cases end as nobody wants, and are changed before srun opens files.
 */
#ifndef JAIL_SRUN_INPUT_H
#define JAIL_SRUN_INPUT_H

#include <stddef.h>

#include "failure.h"

/* The value of the last -i or --input among srun's own `count` arguments, else `inherited`; NULL: there is none. */
const char *srun_input(char *const arguments[], size_t count, const char *inherited);

/*
 * Refuse a directory, which srun takes for an empty file. With a file a task (%t), which the nodes open, srun sends its
 * own standard input beside them, of which slurmstepd of 24.11 dies, and the step does not end: give srun one in which
 * nothing ever comes. `input` may be NULL. Returns 0 or -1.
 */
int srun_input_prepare(const char *input, struct failure *failure);

/* The same for the calling process, which is srun; its last `program` arguments are those of what it starts. */
int srun_input_prepare_own(size_t program, struct failure *failure);

#endif
