/*
 * unpack_msg for slurmctld and slurmd, by LD_PRELOAD: of users, only messages that their programs send are read.
 *
 * Slurm 24.11 and 26.05 read a message of any type from everyone, with a signature or without, before they ask who may send
 * it. Damaged ones of the daemons' types, and damaged answers, write to memory that isn't theirs, or end the daemon. Of the
 * types below, none of 20,000 damaged ones did so while it was read. Some would end slurmctld later, by what no client sends:
 * they are not read, or get what clients send.
 *
 * root and slurmctld's own user, as whom all daemons send, may send everything. Answers have no signature. slurmctld and
 * slurmstepd ask srun and salloc, which are users' programs, and slurmd passes messages on to ports on which a program of a
 * user may listen while a slurmd is down: of their answers, only types that slurmd and srun give are read. What slurmctld
 * alone answers is not judged.
 */
#include <dlfcn.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

#define UNPACK_ERROR (-1) /* SLURM_ERROR */
#define NO_TYPE 0
#define NO_USER ((uid_t)-1)

/* Types of msg_type.h, first and last of every row. */
typedef const uint16_t range[2];

/* All that slurmctld answers but what daemons and other clusters send. */
static range OF_SLURMCTLD[] = {
    {1003, 1003}, {1005, 1005}, {1008, 1010}, {1012, 1015}, {1021, 1021}, {1023, 1023}, {1025, 1027}, /* control */
    {2001, 2001}, {2003, 2003}, {2005, 2005}, {2007, 2007}, {2009, 2009}, {2011, 2011}, {2015, 2015}, {2017, 2019},
    {2021, 2022}, {2024, 2024}, {2026, 2026}, {2028, 2028}, {2030, 2031}, {2035, 2035}, {2037, 2037}, {2039, 2041},
    {2043, 2043}, {2049, 2049}, {2051, 2051}, {2053, 2053}, {2055, 2055}, {2057, 2057}, {2200, 2200}, {2202, 2202}, /* shown */
    {3001, 3009}, {3011, 3011}, {3014, 3016}, /* changed */
    {4001, 4001}, {4003, 4003}, {4007, 4007}, {4012, 4012}, {4014, 4014}, {4019, 4019}, {4021, 4023}, {4025, 4025},
    {4027, 4029}, /* jobs */
    {5001, 5001}, {5005, 5005}, {5007, 5008}, {5014, 5014}, {5016, 5017}, {5021, 5021}, {5023, 5023}, {5032, 5032},
    {5038, 5039}, {5041, 5041}, /* steps, and what ends them */
    {8001, 8001}, /* a return code, which slurmctld takes as a request, too */
    {0, 0},
};

/* What srun, sattach, sstat, sbcast, and scontrol send to slurmd, and PMI-2 in srun. */
static range OF_SLURMD[] = {
    {2013, 2013}, {5019, 5019}, {5024, 5024}, {5027, 5027}, {5029, 5029}, {5035, 5035},               /* nodes, and steps */
    {6001, 6001}, {6004, 6004}, {6006, 6007}, {6014, 6014},                                          /* tasks */
    {2005, 2005}, {4023, 4023}, {4027, 4027}, {5001, 5001}, {5005, 5005}, {5021, 5021}, {5043, 5043}, /* of --stepmgr */
    {0, 0},
};

/* What slurmd and srun answer, for themselves and in a header for those to which slurmd passed a message on. */
static range ANSWERS[] = {
    {1016, 1016}, {1018, 1018}, {1020, 1020}, {2014, 2014}, {5020, 5020}, {5025, 5025}, {5028, 5028}, {5036, 5036},
    {6008, 6008}, {6020, 6020}, {8001, 8002}, {9001, 9001}, {0, 0},
};

/* What srun answers to slurmstepd. */
static range RETURN_CODES[] = {{8001, 8002}, {0, 0}};

/* Those of OF_SLURMCTLD and OF_SLURMD that have no body in a version of Slurm. Handlers of the others read it, which an unread one doesn't have. */
static const uint16_t WITHOUT_BODY[] = {1003, 1008, 1009, 1012, 2011, 2026, 2028, 2037, 2049, 2053, 5024};

enum { UPDATE_JOB = 3001, ALLOCATION = 4001, BATCH_JOB = 4003, WILL_RUN = 4012 };
enum { HET_ALLOCATION = 4025, HET_BATCH_JOB = 4028, KILL_JOB = 5032, CRONTAB = 2202, ATTACH = 6007, PASS_ON = 5029 };
enum { LAUNCH = 6001, FILE_BLOCK = 6014 };

/* Bytes in launch_tasks_request_msg_t before the nodes of a whole heterogeneous step, its own ones, and their names. */
#define HET_NODES 8
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

/* Slurm takes memory for as many strings as a message says that it has. Users' have few: those of an environment. */
#define ARRAY_BYTES_MAX (64u << 20)

/* Of a whole answer. */
#define ANSWER_BYTES_MAX (65u << 20)

/* Bitmaps are of nodes, of their cores, and of an array's tasks: 65,536 nodes of 256 cores. */
#define BITS_MAX (16 << 20)

/* libslurm's. Programs without it have the library in memory, too, as slurmd's scripts inherit it. */
extern slurm_conf_t slurm_conf __attribute__((weak));

/* Start of buf_t. */
struct buffer {
    uint32_t magic;
    char *bytes;
    uint32_t size;
    uint32_t read; /* bytes of them */
};

/* Words at the start of slurm_msg_t: its body is among them. */
#define MESSAGE_WORDS 32

#define CRONTAB_TIMES 5 /* minutes, hours, days of a month, months, and days of a week */

/* Start of cron_entry_t. */
struct crontab_line {
    uint32_t flags;
    void *times[CRONTAB_TIMES]; /* bitmaps */
};

/* The message that this thread receives. */
static _Thread_local struct {
    bool asked_for;        /* an answer to the daemon */
    const range *expected; /* of answers, or NULL for all */
    const range *known;    /* while it is received: what users may send */
    bool has_no_type_yet;  /* while its header is read */
    bool judged;        /* while it is read */
    size_t refused;     /* elements of the array that is not allocated; 0 for none */
    uint16_t type;
    uid_t sender;
} message;

static int (*receive_answer)(uintptr_t connection, void *received, int milliseconds);
static int (*ask)(void *request, int *code, int milliseconds);
static void *(*receive_answers)(uintptr_t connection, int steps, int milliseconds);
static void *(*receive_passed_on)(uintptr_t connection, int steps, int milliseconds);
static int (*receive)(void *received, int descriptor, void *buffer);
static int (*receive_to_forward)(int descriptor, void *address, void *received);
static int (*unpack_to_forward)(void *received, void *address, int descriptor, void *buffer);
static int (*read_header)(void *header, void *buffer);
static void (*get_ids)(void *credential, uid_t *user, gid_t *group);
static int (*unpack)(void *unpacked, void *buffer);
static int (*unpack_switch_24)(void **unpacked, struct buffer *buffer, uint16_t version);
static int (*unpack_switch_26)(void **unpacked, struct buffer *buffer, uint16_t version);
static void *(*allocate)(size_t, size_t, bool, bool, const char *, int, const char *);
static void (*free_tasks)(void *tasks);
static void *(*allocate_bits)(int64_t count);
static char *(*copy)(const char *text);
static bool (*is_valid_line)(struct crontab_line *line);
static int (*for_each)(void *list, int (*call)(void *item, void *argument), void *argument);
static int (*unpack_job)(void **job, int resources, void *buffer, uint16_t version);
static void *(*begin_hosts)(const char *names);
static int (*count_hosts)(void *hosts);
static void (*end_hosts)(void *hosts);

__attribute__((constructor)) static void prepare(void)
{
    receive_answer = (int (*)(uintptr_t, void *, int))dlsym(RTLD_NEXT, "slurm_receive_msg");
    ask = (int (*)(void *, int *, int))dlsym(RTLD_NEXT, "slurm_send_recv_rc_msg_only_one");
    receive_answers = (void *(*)(uintptr_t, int, int))dlsym(RTLD_NEXT, "slurm_receive_msgs");
    receive_passed_on = (void *(*)(uintptr_t, int, int))dlsym(RTLD_NEXT, "slurm_receive_resp_msgs");
    receive = (int (*)(void *, int, void *))dlsym(RTLD_NEXT, "slurm_unpack_received_msg");
    receive_to_forward = (int (*)(int, void *, void *))dlsym(RTLD_NEXT, "slurm_receive_msg_and_forward");
    unpack_to_forward = (int (*)(void *, void *, int, void *))dlsym(RTLD_NEXT, "slurm_unpack_msg_and_forward");
    read_header = (int (*)(void *, void *))dlsym(RTLD_NEXT, "unpack_header");
    get_ids = (void (*)(void *, uid_t *, gid_t *))dlsym(RTLD_NEXT, "auth_g_get_ids");
    unpack = (int (*)(void *, void *))dlsym(RTLD_NEXT, "unpack_msg");
    unpack_switch_24 = (int (*)(void **, struct buffer *, uint16_t))dlsym(RTLD_NEXT, "switch_g_unpack_stepinfo");
    unpack_switch_26 = (int (*)(void **, struct buffer *, uint16_t))dlsym(RTLD_NEXT, "switch_g_stepinfo_unpack");
    allocate = (void *(*)(size_t, size_t, bool, bool, const char *, int, const char *))dlsym(RTLD_NEXT, "slurm_xcalloc");
    free_tasks = (void (*)(void *))dlsym(RTLD_NEXT, "slurm_free_launch_tasks_request_msg");
    allocate_bits = (void *(*)(int64_t))dlsym(RTLD_NEXT, "bit_alloc");
    copy = (char *(*)(const char *))dlsym(RTLD_NEXT, "slurm_xstrdup");
    is_valid_line = (bool (*)(struct crontab_line *))dlsym(RTLD_NEXT, "valid_cron_entry");
    for_each = (int (*)(void *, int (*)(void *, void *), void *))dlsym(RTLD_NEXT, "slurm_list_for_each");
    unpack_job = (int (*)(void **, int, void *, uint16_t))dlsym(RTLD_NEXT, "job_record_unpack");
    begin_hosts = (void *(*)(const char *))dlsym(RTLD_NEXT, "hostlist_create");
    count_hosts = (int (*)(void *))dlsym(RTLD_NEXT, "hostlist_count");
    end_hosts = (void (*)(void *))dlsym(RTLD_NEXT, "hostlist_destroy");
    offsets = unpack_switch_26 ? &IN_26 : &IN_24;
}

static bool is_known(uint16_t type)
{
    for (const range *known = message.known; (*known)[0]; known++)
        if ((*known)[0] <= type && type <= (*known)[1])
            return true;
    return false;
}

static void begin(const range *known)
{
    message.known = known;
    message.type = NO_TYPE;
    message.sender = NO_USER;
}

static int end(int result)
{
    message.known = NULL;
    return result;
}

/* The connection is a descriptor in 24.11, and an address in 26.05. */
EXPORTED int slurm_receive_msg(uintptr_t connection, void *received, int milliseconds)
{
    int result;

    message.asked_for = true;
    result = receive_answer(connection, received, milliseconds);
    message.asked_for = false;
    return result;
}

/* As slurmstepd asks srun. */
EXPORTED int slurm_send_recv_rc_msg_only_one(void *request, int *code, int milliseconds)
{
    int result;

    message.expected = RETURN_CODES;
    result = ask(request, code, milliseconds);
    message.expected = NULL;
    return result;
}

/* As slurmctld asks nodes, srun, and salloc. */
EXPORTED void *slurm_receive_msgs(uintptr_t connection, int steps, int milliseconds)
{
    void *answers;

    begin(ANSWERS);
    answers = receive_answers(connection, steps, milliseconds);
    end(0);
    return answers;
}

/* As slurmd passes messages on. */
EXPORTED void *slurm_receive_resp_msgs(uintptr_t connection, int steps, int milliseconds)
{
    void *answers;

    begin(ANSWERS);
    answers = receive_passed_on(connection, steps, milliseconds);
    end(0);
    return answers;
}

/* As slurmctld does. */
EXPORTED int slurm_unpack_received_msg(void *received, int descriptor, void *buffer)
{
    begin(message.asked_for ? message.expected : OF_SLURMCTLD);
    return end(receive(received, descriptor, buffer));
}

/* As slurmd 24.11 does. */
EXPORTED int slurm_receive_msg_and_forward(int descriptor, void *address, void *received)
{
    begin(OF_SLURMD);
    return end(receive_to_forward(descriptor, address, received));
}

/* As slurmd 26.05 does. */
EXPORTED int slurm_unpack_msg_and_forward(void *received, void *address, int descriptor, void *buffer)
{
    begin(OF_SLURMD);
    return end(unpack_to_forward(received, address, descriptor, buffer));
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

/*
 * slurmd passes a message on before it asks for the sender: it reads the list of nodes, whether it is one or not, and takes
 * as many threads at a time as the message says, or one for every node.
 */
static bool can_be_passed_on(char *header)
{
    uint16_t count = *(uint16_t *)(header + PASSED_ON_COUNT), *width = (uint16_t *)(header + PASSED_ON_WIDTH);

    if (!count)
        return true;
    if (*width > slurm_conf.tree_width)
        *width = slurm_conf.tree_width;
    return names_hosts(*(char **)(header + PASSED_ON_NAMES), count);
}

/*
 * A header may hold answers of other daemons. It is read before the signature, so these have no sender here. In a request
 * they are not read: slurmctld refuses them in all that it receives, and slurmd drops them.
 */
EXPORTED int unpack_header(void *header, void *buffer)
{
    int result;

    message.has_no_type_yet = true;
    result = read_header(header, buffer);
    message.has_no_type_yet = false;
    if (result == 0 && message.known == OF_SLURMD && !can_be_passed_on(header))
        return UNPACK_ERROR;
    if (result == 0)
        message.type = ((const uint16_t *)header)[2]; /* after version and flags */
    return result;
}

EXPORTED void auth_g_get_ids(void *credential, uid_t *user, gid_t *group)
{
    get_ids(credential, user, group);
    message.sender = *user;
}

/* Where an allocation may fail, the message is refused. */
EXPORTED void *slurm_xcalloc(size_t count, size_t size, bool clear, bool may_fail, const char *file, int line, const char *by)
{
    if (message.known == ANSWERS && may_fail && size && count > ANSWER_BYTES_MAX / size)
        return NULL;
    if (message.judged && may_fail && size && count > ARRAY_BYTES_MAX / size) {
        message.refused = count;
        return NULL;
    }
    return allocate(count, size, clear, may_fail, file, line, by);
}

/* With none, a message is refused: jobs' records, whose reader needs one, are not read of users. slurm_bit_alloc is its name in plugins. */
EXPORTED void *bit_alloc(int64_t count)
{
    return message.judged && (count < 0 || count > BITS_MAX) ? NULL : allocate_bits(count);
}

EXPORTED void *slurm_bit_alloc(int64_t count) __attribute__((alias("bit_alloc")));

/* slurmd alone adds a job's record to a launch, for slurmstepd. */
EXPORTED int job_record_unpack(void **job, int resources, void *buffer, uint16_t version)
{
    return message.judged ? UNPACK_ERROR : unpack_job(job, resources, buffer, version);
}

/* It reads the tasks of a heterogeneous step's nodes, whether they were allocated or not. */
EXPORTED void slurm_free_launch_tasks_request_msg(void *tasks)
{
    uint32_t *nodes = tasks ? (uint32_t *)((char *)tasks + HET_NODES) : NULL;

    if (message.judged && message.refused && nodes && *nodes == message.refused)
        *nodes = NO_VAL;
    free_tasks(tasks);
}

/* slurmd skips as many bytes of a step's switch as the message says, whether it has them or not. */
static int skipped(int result, const struct buffer *buffer, uint32_t before)
{
    bool is_whole = before <= buffer->read && buffer->read <= buffer->size;

    return message.judged && !is_whole ? UNPACK_ERROR : result;
}

EXPORTED int switch_g_unpack_stepinfo(void **unpacked, struct buffer *buffer, uint16_t version)
{
    uint32_t before = buffer->read;

    return skipped(unpack_switch_24(unpacked, buffer, version), buffer, before);
}

EXPORTED int switch_g_stepinfo_unpack(void **unpacked, struct buffer *buffer, uint16_t version)
{
    uint32_t before = buffer->read;

    return skipped(unpack_switch_26(unpacked, buffer, version), buffer, before);
}

static bool has_body(uint16_t type)
{
    for (size_t i = 0; i < sizeof(WITHOUT_BODY) / sizeof(WITHOUT_BODY[0]); i++)
        if (WITHOUT_BODY[i] == type)
            return false;
    return true;
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

/* Have a body contain what clients send. */
static void mend(uint16_t type, void *body)
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

/* slurmd looks up its own name in a launch, and takes its place among the names for one among the nodes. */
static bool has_node_for_every_name(const char *tasks)
{
    return names_hosts(*(char *const *)(tasks + offsets->names), *(const uint32_t *)(tasks + offsets->nodes));
}

/* slurmctld reads the bitmaps of a crontab's line, whether it has them or not. */
EXPORTED bool valid_cron_entry(struct crontab_line *line)
{
    for (size_t i = 0; i < CRONTAB_TIMES; i++)
        if (!line->times[i])
            return false;
    return is_valid_line(line);
}

/* The one word of slurm_msg_t that gets its first value while a message is read. */
static void **find_body(void *const *before, void **after)
{
    for (size_t i = 0; i < MESSAGE_WORDS; i++)
        if (!before[i] && after[i])
            return &after[i];
    return NULL;
}

EXPORTED int unpack_msg(void *unpacked, void *buffer)
{
    void *before[MESSAGE_WORDS], **body;
    int result;

    if (!message.known || message.sender == 0 || message.sender == slurm_conf.slurm_user_id)
        return unpack(unpacked, buffer);
    if (message.has_no_type_yet && message.known == ANSWERS)
        message.type = *(const uint16_t *)((const char *)unpacked + offsets->type);
    if (!is_known(message.type))
        return UNPACK_ERROR;
    memcpy(before, unpacked, sizeof(before));
    message.judged = true;
    message.refused = 0;
    result = unpack(unpacked, buffer);
    message.judged = false;
    if (result != 0 || message.known == ANSWERS || message.known == RETURN_CODES || !has_body(message.type))
        return result;
    body = find_body(before, unpacked);
    if (!body)
        return UNPACK_ERROR;
    if (message.type == LAUNCH && !has_node_for_every_name(*body)) {
        free_tasks(*body);
        *body = NULL;
        return UNPACK_ERROR;
    }
    mend(message.type, *body);
    return result;
}
