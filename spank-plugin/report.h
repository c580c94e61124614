/*
 * From a task that could not enter the jail to the slurmstepd that started it, and on to slurmctld: the node is
 * drained when it would fail every job, since a node that fails at once would eat a whole queue.
 *
 * A failure of a shared volume looks the same on a node that has lost it and on all nodes when the volume is away. So of
 * the cluster's nodes at most one in REPORT_ONE_IN, and one at least, is drained for such a failure at any time. Nodes
 * that drain at the same moment look again afterwards, and those that see too many take their own drain back: the last
 * one has seen all others, so that never more than that stay.
 */
#ifndef JAIL_REPORT_H
#define JAIL_REPORT_H

#include "failure.h"

#define REPORT_ONE_IN 50

/* Beginning of the reason of such a drain; of others: "jail: ". */
#define REPORT_VOLUME "jail: shared volume: "

/* Prepare, in slurmstepd, the memory that it will share with its tasks. Returns 0, or -1 with errno. */
int report_prepare(void);

/* In a task: report to slurmstepd. */
void report_failure(const struct failure *failure);

/* In slurmstepd, after a task has ended: drain this node if a task has reported a failure that concerns more than the
 * job; once. */
void report_drain(void);

#endif
