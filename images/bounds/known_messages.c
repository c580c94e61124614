/*
 * unpack_msg for slurmctld and slurmd, by LD_PRELOAD: of users, only messages that their programs send are read.
 *
 * Slurm 24.11 and 26.05 read a message of any type from everyone, with a signature or without, before they ask who may send
 * it. Damaged ones of the daemons' types, and damaged answers, write to memory that isn't theirs, or end the daemon. Of the
 * types of message_types.c, none of 20,000 damaged ones did so while it was read. Some would end slurmctld later, by what no
 * client sends: they are not read, or get what clients send.
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

#include "message_bodies.h"
#include "message_types.h"

#define EXPORTED __attribute__((visibility("default")))

#define UNPACK_ERROR (-1) /* SLURM_ERROR */
#define NO_TYPE 0
#define NO_USER ((uid_t)-1)

/* Of a whole answer. */
#define ANSWER_BYTES_MAX (65u << 20)

/* Bitmaps are of nodes, of their cores, and of an array's tasks: 65,536 nodes of 256 cores. */
#define BITS_MAX (16 << 20)

/* Bytes in launch_tasks_request_msg_t before the nodes of a whole heterogeneous step. */
#define HET_NODES 8

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
    bool judged;           /* while it is read */
    size_t refused;        /* elements of the array that is not allocated; 0 for none */
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
static bool (*is_valid_line)(struct crontab_line *line);
static int (*unpack_job)(void **job, int resources, void *buffer, uint16_t version);

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
    is_valid_line = (bool (*)(struct crontab_line *))dlsym(RTLD_NEXT, "valid_cron_entry");
    unpack_job = (int (*)(void **, int, void *, uint16_t))dlsym(RTLD_NEXT, "job_record_unpack");
    message_bodies_prepare();
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
    if (result == 0 && message.known == OF_SLURMD && !message_can_be_passed_on(header))
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
        message.type = message_type(unpacked);
    if (!message_type_is_in(message.type, message.known))
        return UNPACK_ERROR;
    memcpy(before, unpacked, sizeof(before));
    message.judged = true;
    message.refused = 0;
    result = unpack(unpacked, buffer);
    message.judged = false;
    if (result != 0 || message.known == ANSWERS || message.known == RETURN_CODES || !message_type_has_body(message.type))
        return result;
    body = find_body(before, unpacked);
    if (!body)
        return UNPACK_ERROR;
    if (message.type == LAUNCH && !message_has_node_for_every_name(*body)) {
        free_tasks(*body);
        *body = NULL;
        return UNPACK_ERROR;
    }
    message_mend(message.type, *body);
    return result;
}
