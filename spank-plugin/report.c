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

#define MAX_PAUSE_SECONDS 4

struct message {
    int taken; /* by the first task that fails so: all of a step fail for the same reason */
    int ready; /* once the rest is whole */
    enum failure_scope scope;
    char reason[512];
};

/* Answer of slurmctld: this node's state, and the drains for the shared volume on all nodes. */
struct census {
    uint32_t nodes;
    uint32_t drained; /* of them, for the shared volume */
    bool here_drained;
    bool here_for_volume;
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
    if (!message || failure->scope < FAILURE_VOLUME || __atomic_exchange_n(&message->taken, 1, __ATOMIC_ACQ_REL))
        return;
    message->scope = failure->scope;
    snprintf(message->reason, sizeof(message->reason), "%s%.480s",
             failure->scope == FAILURE_VOLUME ? REPORT_VOLUME : "jail: ", failure->text);
    __atomic_store_n(&message->ready, 1, __ATOMIC_RELEASE);
}

/* Count nodes: of the whole cluster, or this one alone. Returns 0, or -1 without an answer of slurmctld. */
static int count(char *here, bool all, struct census *census)
{
    node_info_msg_t *found = NULL;

    memset(census, 0, sizeof(*census));
    if ((all ? slurm_load_node(0, &found, SHOW_ALL) : slurm_load_node_single(&found, here, 0)) != 0)
        return -1;
    for (uint32_t i = 0; i < found->record_count; i++) {
        const node_info_t *node = &found->node_array[i];
        bool is_drained = (node->node_state & NODE_STATE_DRAIN) != 0;
        bool for_volume = is_drained && node->reason && strncmp(node->reason, REPORT_VOLUME, strlen(REPORT_VOLUME)) == 0;

        if (!node->name)
            continue; /* a deleted node's place */
        census->nodes++;
        census->drained += for_volume;
        if (strcmp(node->name, here) == 0) {
            census->here_drained = is_drained;
            census->here_for_volume = for_volume;
        }
    }
    slurm_free_node_info_msg(found);
    return 0;
}

static uint32_t allowed(const struct census *census)
{
    return census->nodes < REPORT_ONE_IN ? 1 : census->nodes / REPORT_ONE_IN;
}

static int set_state(char *node, uint32_t state, char *reason)
{
    update_node_msg_t update;

    slurm_init_update_node_msg(&update);
    update.node_names = node;
    update.node_state = state;
    update.reason = reason;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(26, 5, 0)
    update.reason_uid = geteuid(); /* later versions take it from who asks */
#endif
    if (slurm_update_node(&update) == 0)
        return 0;
    slurm_error("jail: the state of this node could not be changed: %s", slurm_strerror(errno));
    return -1;
}

/* Count again, patiently: all nodes may be asking now. */
static int recount(char *here, struct census *census)
{
    for (unsigned int pause_seconds = 1; count(here, true, census) < 0; pause_seconds *= 2) {
        if (pause_seconds > MAX_PAUSE_SECONDS)
            return -1;
        sleep(pause_seconds);
    }
    return 0;
}

static void drain_for_volume(char *node, char *reason)
{
    static char none[] = "none";
    struct census census;

    if (count(node, true, &census) < 0 || census.here_drained)
        return;
    if (census.drained >= allowed(&census)) {
        slurm_error("jail: this node is not drained: %u of %u are for the shared volume already", census.drained,
                    census.nodes);
        return;
    }
    if (set_state(node, NODE_STATE_DRAIN, reason) < 0 || recount(node, &census) < 0)
        return; /* the drain stays: a node more than allowed, where slurmctld has just accepted it and then is silent */
    if (census.here_for_volume && census.drained > allowed(&census))
        set_state(node, NODE_STATE_UNDRAIN, none);
}

void report_drain(void)
{
    char node[HOST_NAME_MAX + 1];
    char reason[sizeof(message->reason)];
    struct census census;

    if (!message || drained || !__atomic_load_n(&message->ready, __ATOMIC_ACQUIRE))
        return;
    drained = true;
    memcpy(reason, message->reason, sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    /* A pod's host name is its node's name. */
    if (gethostname(node, sizeof(node)) < 0)
        return;
    if (message->scope == FAILURE_VOLUME)
        drain_for_volume(node, reason);
    /* A drain that someone else has set keeps its reason. */
    else if (count(node, false, &census) < 0 || !census.here_drained)
        set_state(node, NODE_STATE_DRAIN, reason);
}
