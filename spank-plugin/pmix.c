#include "pmix.h"

#include <stdio.h>
#include <string.h>

/* The mapping is "(vector,(FIRST,NODES,TASKS),...)": TASKS tasks on each of NODES nodes, FIRST being their first. */
static uint32_t count_nodes(const char *mapping)
{
    unsigned int first, nodes, tasks;
    uint32_t count = 0;

    for (const char *block = mapping + strcspn(mapping, ","); (block = strchr(block, '(')); block++)
        if (sscanf(block, "(%u,%u,%u)", &first, &nodes, &tasks) == 3 && first + nodes > count)
            count = first + nodes;
    return count;
}

int pmix_check(const char *mapping, uint32_t nodes, struct failure *failure)
{
    if (!mapping || count_nodes(mapping) <= nodes)
        return 0;
    return fail_saying(failure, FAILURE_JOB,
                       "PMIx reaches the nodes of one component alone. Start all tasks as one component");
}
