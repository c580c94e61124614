/*
 * unpack_slurmdbd_msg for slurmdbd, by LD_PRELOAD: of users, only records that their programs send are read.
 *
 * A connection to slurmdbd begins with a message that names its user. Slurm 24.11 and 26.05 read one of any type in its
 * place, and take it for that message. One without a signature ends slurmdbd, and so does one without a body. They also read
 * records of any kind from everyone, before they ask who may send them.
 *
 * sacctmgr is for everyone, as users may be operators and coordinators, so what it adds, changes, and removes is read.
 * root, and the user of slurmctld and slurmdbd, may send everything.
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

enum { BEGINNING = 6500 }; /* of a connection: REQUEST_PERSIST_INIT */

/* Types of slurmdbd_defs.h, first and last of every row: what sacct, sacctmgr, and sreport send. */
static const uint16_t KNOWN[][2] = {
    {1401, 1406}, {1409, 1415}, {1428, 1431}, {1435, 1440}, {1444, 1445}, {1447, 1448}, {1450, 1453}, {1455, 1457},
    {1459, 1460}, {1464, 1464}, {1466, 1466}, {1468, 1468}, {1470, 1470}, {1476, 1478}, {1480, 1481}, {1486, 1486},
    {1488, 1489}, {1491, 1494}, {1496, 1497}, {1501, 1503}, {1505, 1505}, {1507, 1507},
};

/* slurmdbd reads one record at a time of 80 connections. */
#define RECORD_BYTES_MAX (2u << 20)

/* Bitmaps are of an array's tasks. */
#define BITS_MAX (16 << 20)

/* Start of buf_t. */
struct buffer {
    uint32_t magic;
    unsigned char *bytes;
    uint32_t size;
    uint32_t read; /* bytes of them */
};

extern slurm_conf_t slurm_conf __attribute__((weak));

/* The connection that this thread serves: slurmdbd starts a thread for every one. */
static _Thread_local struct {
    bool begins;   /* while the message is read that begins it */
    uint16_t type; /* of that message */
    uid_t user;
    bool judged; /* while a record is read */
} connection = {.user = NO_USER};

static int (*unpack_record)(void *record, uint16_t version, struct buffer *buffer);
static int (*read_header)(void *header, void *buffer);
static int (*unpack)(void *unpacked, void *buffer);
static void (*get_ids)(void *credential, uid_t *user, gid_t *group);
static void *(*allocate)(size_t, size_t, bool, bool, const char *, int, const char *);
static void *(*allocate_bits)(int64_t count);

__attribute__((constructor)) static void prepare(void)
{
    unpack_record = (int (*)(void *, uint16_t, struct buffer *))dlsym(RTLD_NEXT, "unpack_slurmdbd_msg");
    read_header = (int (*)(void *, void *))dlsym(RTLD_NEXT, "unpack_header");
    unpack = (int (*)(void *, void *))dlsym(RTLD_NEXT, "unpack_msg");
    get_ids = (void (*)(void *, uid_t *, gid_t *))dlsym(RTLD_NEXT, "auth_g_get_ids");
    allocate = (void *(*)(size_t, size_t, bool, bool, const char *, int, const char *))dlsym(RTLD_NEXT, "slurm_xcalloc");
    allocate_bits = (void *(*)(int64_t))dlsym(RTLD_NEXT, "bit_alloc");
}

static bool is_trusted(void)
{
    return connection.user == 0 || connection.user == slurm_conf.slurm_user_id;
}

static bool is_known(uint16_t type)
{
    for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); i++)
        if (KNOWN[i][0] <= type && type <= KNOWN[i][1])
            return true;
    return false;
}

static uint16_t next_type(const struct buffer *buffer)
{
    const unsigned char *next = buffer->bytes + buffer->read;

    return buffer->size - buffer->read < 2 ? NO_TYPE : (uint16_t)(next[0] << 8 | next[1]);
}

EXPORTED int unpack_slurmdbd_msg(void *record, uint16_t version, struct buffer *buffer)
{
    uint16_t type = next_type(buffer);
    int result = UNPACK_ERROR;

    if (type == BEGINNING) {
        connection.user = NO_USER;
        connection.type = NO_TYPE;
        connection.begins = true;
        result = unpack_record(record, version, buffer);
        connection.begins = false;
        if (result != 0)
            connection.user = NO_USER;
    } else if (is_trusted()) {
        result = unpack_record(record, version, buffer);
    } else if (connection.user != NO_USER && is_known(type)) {
        connection.judged = true;
        result = unpack_record(record, version, buffer);
        connection.judged = false;
    }
    return result;
}

EXPORTED int unpack_header(void *header, void *buffer)
{
    int result = read_header(header, buffer);

    if (result == 0)
        connection.type = ((const uint16_t *)header)[2]; /* after version and flags */
    return result;
}

EXPORTED void auth_g_get_ids(void *credential, uid_t *user, gid_t *group)
{
    get_ids(credential, user, group);
    if (connection.begins)
        connection.user = *user;
}

/* The answers that a header may hold have no type here, and a message without a signature has no user. */
EXPORTED int unpack_msg(void *unpacked, void *buffer)
{
    if (connection.begins && (connection.type != BEGINNING || connection.user == NO_USER))
        return UNPACK_ERROR;
    return unpack(unpacked, buffer);
}

/* Into no memory slurmdbd reads no record, and closes the connection. */
EXPORTED void *slurm_xcalloc(size_t count, size_t size, bool clear, bool may_fail, const char *file, int line, const char *by)
{
    bool is_large = size && count > RECORD_BYTES_MAX / size && !is_trusted();

    if (is_large && (connection.judged ? may_fail : strcmp(by, "_process_service_connection") == 0))
        return NULL;
    return allocate(count, size, clear, may_fail, file, line, by);
}

EXPORTED void *bit_alloc(int64_t count)
{
    return connection.judged && (count < 0 || count > BITS_MAX) ? NULL : allocate_bits(count);
}

EXPORTED void *slurm_bit_alloc(int64_t count) __attribute__((alias("bit_alloc")));
