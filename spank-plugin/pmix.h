/*
 * Steps with PMIx that would wait for ever.
 */
#ifndef JAIL_PMIX_H
#define JAIL_PMIX_H

#include <stdint.h>

#include "failure.h"

/*
 * Refuse a heterogeneous step (`srun --mpi=pmix a : b`). Nodes register themselves, so slurmstepd knows of the addresses
 * that its own component's credential brings and of no others: its PMIx server does not reach those of the other
 * components, and all tasks wait in MPI_Init until they are cancelled.
 *
 * mapping: SLURM_PMIX_MAPPING_SERV, where slurmstepd says which tasks are on which of the step's nodes; NULL: no PMIx.
 * nodes: the number of nodes of the step's own component.
 *
 * Returns 0 or -1; the failure is the job's.
 */
int pmix_check(const char *mapping, uint32_t nodes, struct failure *failure);

#endif
