/*
 * The folder in slurmd's spool that a step's PMIx server has for its tasks.
 */
#ifndef JAIL_PMIX_H
#define JAIL_PMIX_H

#include <stddef.h>
#include <stdint.h>

#include "failure.h"

#define PMIX_NAME_SIZE 48

/*
 * Find the name of the folder in `spool`: `pmix.<job>.<step>`. In a heterogeneous job all components have the folder of
 * the first one's number, which SPANK does not tell; the socket that slurmstepd listens on has it in its name. A step
 * without a PMIx server gets the name of its own numbers. Returns 0 or -1.
 */
int pmix_folder(const char *spool, uint32_t job_id, uint32_t step_id, char name[PMIX_NAME_SIZE],
                struct failure *failure);

#endif
