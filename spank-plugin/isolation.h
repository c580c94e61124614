/*
 * Process and IPC namespaces for the tasks of a step (isolation=pid,ipc).
 *
 * All tasks of one step on one node share them, so that the ranks of an MPI program see each other's process numbers
 * and shared memory; what one step starts by itself (mpirun in a batch script) is in it too. Steps of one job do not
 * share: a namespace of processes ends with its first process, and one that outlived the step would belong to no
 * step's control group, where Slurm counts and kills. POSIX shared memory are files in /dev/shm, which file modes guard,
 * and which stay common to the node.
 *
 * The first process is the holder, a child of slurmstepd that does nothing but reap. Tasks are forked by slurmstepd
 * directly into the namespace, so their process numbers as slurmstepd sees them, their signals and exit codes are as
 * without it. When slurmstepd ends, the holder ends, and with it every process of the step.
 */
#ifndef JAIL_ISOLATION_H
#define JAIL_ISOLATION_H

#include <stdbool.h>
#include <sys/types.h>

#include "failure.h"

struct isolation {
    pid_t holder;      /* 0: there is none */
    int pid_namespace; /* descriptors of namespaces; -1 where not wanted */
    int ipc_namespace;
    int own_pid_namespace;
    int lifeline; /* its end lets the holder end */
};

#define ISOLATION_NONE {0, -1, -1, -1, -1}

/* In slurmstepd, as root: start the holder of namespaces of the wanted kinds. Returns 0 or -1. */
int isolation_start(struct isolation *isolation, bool pid, bool ipc, struct failure *failure);

/*
 * The children that the calling thread forks from now on (`inside`), or no more, are in the process namespace. In
 * between it can start no thread. It may have another effective user, if its real one is root. Returns 0 or -1.
 */
int isolation_fork(const struct isolation *isolation, bool inside, struct failure *failure);

/* In a task, as root: go into the IPC namespace, and let go of the lifeline. Returns 0 or -1. */
int isolation_join(struct isolation *isolation, struct failure *failure);

/* In slurmstepd: end the holder and all that is left in its namespace of processes; once, or again without effect. */
void isolation_stop(struct isolation *isolation);

#endif
