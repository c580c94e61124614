#include "report.h"

#include <errno.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct message {
    int taken; /* by the first task that fails so: all of a step fail for the same reason */
    int ready; /* once the text is whole */
    char text[512];
};

static struct message *message;
static bool drained;

int report_prepare(void)
{
    void *memory;

    if (message)
        return 0;
    memory = mmap(NULL, sizeof(*message), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    message = memory;
    return 0;
}

void report_failure(const struct failure *failure)
{
    if (!message || failure->scope != FAILURE_NODE || __atomic_exchange_n(&message->taken, 1, __ATOMIC_ACQ_REL))
        return;
    snprintf(message->text, sizeof(message->text), "jail: %.480s", failure->text);
    __atomic_store_n(&message->ready, 1, __ATOMIC_RELEASE);
}

/* A drain that someone else has set keeps its reason. */
static bool is_draining(char *node)
{
    node_info_msg_t *found = NULL;
    bool draining = false;

    if (slurm_load_node_single(&found, node, 0) != 0)
        return false;
    for (uint32_t i = 0; i < found->record_count; i++)
        draining |= (found->node_array[i].node_state & NODE_STATE_DRAIN) != 0;
    slurm_free_node_info_msg(found);
    return draining;
}

void report_drain(void)
{
    char node[HOST_NAME_MAX + 1];
    char reason[sizeof(message->text)];
    update_node_msg_t update;

    if (!message || drained || !__atomic_load_n(&message->ready, __ATOMIC_ACQUIRE))
        return;
    drained = true;
    memcpy(reason, message->text, sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    /* A pod's host name is its node's name. */
    if (gethostname(node, sizeof(node)) < 0 || is_draining(node))
        return;
    slurm_init_update_node_msg(&update);
    update.node_names = node;
    update.node_state = NODE_STATE_DRAIN;
    update.reason = reason;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(26, 5, 0)
    update.reason_uid = geteuid(); /* later versions take it from who asks */
#endif
    if (slurm_update_node(&update) != 0)
        slurm_error("jail: this node could not be drained: %s", slurm_strerror(errno));
}
