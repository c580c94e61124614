#include "message_bodies.h"

#include <dlfcn.h>
#include <slurm/slurm.h>
#include <stddef.h>

#include "message_types.h"

/* Bytes before parts of Slurm's structures: a launch (launch_tasks_request_msg_t) has nodes, and their names. */
static const struct offsets {
    size_t type; /* in slurm_msg_t */
    size_t nodes, names;
} IN_24 = {212, 68, 576}, IN_26 = {226, 76, 592}, *offsets;

/* Bytes in header_t before what is about nodes to which a message is passed on. */
#define PASSED_ON_COUNT 56
#define PASSED_ON_NAMES 64
#define PASSED_ON_WIDTH 76

/* Bytes in file_bcast_msg_t before the length of a block that is not compressed. */
#define BLOCK_BYTES 88

/* Start of crontab_update_request_msg_t. */
struct crontab {
    char *text;
    void *jobs; /* NULL without any */
};

/* libslurm's. Programs without it have the library in memory, too, as slurmd's scripts inherit it. */
extern slurm_conf_t slurm_conf __attribute__((weak));

static void *(*begin_hosts)(const char *names);
static int (*count_hosts)(void *hosts);
static void (*end_hosts)(void *hosts);
static char *(*copy)(const char *text);
static int (*for_each)(void *list, int (*call)(void *item, void *argument), void *argument);

void message_bodies_prepare(void)
{
    begin_hosts = (void *(*)(const char *))dlsym(RTLD_NEXT, "hostlist_create");
    count_hosts = (int (*)(void *))dlsym(RTLD_NEXT, "hostlist_count");
    end_hosts = (void (*)(void *))dlsym(RTLD_NEXT, "hostlist_destroy");
    copy = (char *(*)(const char *))dlsym(RTLD_NEXT, "slurm_xstrdup");
    for_each = (int (*)(void *, int (*)(void *, void *), void *))dlsym(RTLD_NEXT, "slurm_list_for_each");
    offsets = dlsym(RTLD_NEXT, "switch_g_stepinfo_unpack") ? &IN_26 : &IN_24;
}

uint16_t message_type(const void *unpacked)
{
    return *(const uint16_t *)((const char *)unpacked + offsets->type);
}

/* False without names, if they are no list of hosts, or if they are more. */
static bool names_hosts(const char *names, uint32_t most)
{
    void *hosts = names ? begin_hosts(names) : NULL;
    bool has = hosts && most && (uint32_t)count_hosts(hosts) <= most;

    if (hosts)
        end_hosts(hosts);
    return has;
}

bool message_can_be_passed_on(char *header)
{
    uint16_t count = *(uint16_t *)(header + PASSED_ON_COUNT), *width = (uint16_t *)(header + PASSED_ON_WIDTH);

    if (!count)
        return true;
    if (*width > slurm_conf.tree_width)
        *width = slurm_conf.tree_width;
    return names_hosts(*(char **)(header + PASSED_ON_NAMES), count);
}

static uint16_t yes_or_no(uint16_t value, uint16_t unset)
{
    return value == unset ? unset : value != 0;
}

/*
 * A job's other clusters are looked up in the federation, and there is none. slurmctld stores the others as they are, and
 * refuses to start with numbers above 1.
 */
static int mend_job(void *described, void *unused)
{
    job_desc_msg_t *job = described;

    (void)unused;
    job->fed_siblings_active = job->fed_siblings_viable = 0;
    job->contiguous = yes_or_no(job->contiguous, NO_VAL16);
    job->kill_on_node_fail = yes_or_no(job->kill_on_node_fail, NO_VAL16);
    job->overcommit = (uint8_t)yes_or_no(job->overcommit, NO_VAL8);
    return 0;
}

void message_mend(uint16_t type, void *body)
{
    job_step_kill_msg_t *kill = body;
    struct crontab *crontab = body;
    char **text = body; /* key of a step, or path of a socket */
    uint32_t *block = (uint32_t *)((char *)body + BLOCK_BYTES);

    switch (type) {
    case UPDATE_JOB:
    case ALLOCATION:
    case BATCH_JOB:
    case WILL_RUN:
        mend_job(body, NULL);
        break;
    case HET_ALLOCATION:
    case HET_BATCH_JOB:
        for_each(body, mend_job, NULL);
        break;
    case CRONTAB:
        if (crontab->jobs)
            for_each(crontab->jobs, mend_job, NULL);
        break;
    case ATTACH:
    case PASS_ON:
        if (!*text)
            *text = copy("");
        break;
    case FILE_BLOCK: /* a compressed one would fill slurmd's memory with 255 times its own bytes */
        if (*block > ARRAY_BYTES_MAX)
            *block = ARRAY_BYTES_MAX;
        break;
    case KILL_JOB:
        if (!kill->sjob_id)
            kill->sjob_id = copy("");
        break;
    default:
        break;
    }
}

bool message_has_node_for_every_name(const char *launch)
{
    return names_hosts(*(char *const *)(launch + offsets->names), *(const uint32_t *)(launch + offsets->nodes));
}
