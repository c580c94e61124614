#include "step_callers.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* The header in network order: magic, type, sequence, node, and bytes of the message, as 32 bits, and a flag of 8. */
#define MAGIC 0xCAFECA11
#define HEADER_BYTES 21
enum { MAGIC_AT = 0, LENGTH_AT = 16 };

struct caller {
    int connection;
    ino_t socket; /* another one may have the descriptor by now */
    uint64_t number; /* counted from 1, or 0 where there is none */
    uint64_t read;   /* bytes */
    unsigned char header[HEADER_BYTES];
};

static struct caller callers[STEP_CALLERS_MAX];
static _Atomic unsigned int greeting; /* callers */
static uint64_t last;
static pid_t slurmstepd; /* or 0; a child that it forks may find the lock taken for ever, and has no callers */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORTED void step_callers_are_bounded(void)
{
    slurmstepd = getpid();
}

static void forget(struct caller *caller)
{
    caller->number = 0;
    greeting--;
}

static bool is_open(const struct caller *caller)
{
    struct stat status;

    return fstat(caller->connection, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == caller->socket;
}

/* A place for another caller: an empty one, that of one who has gone, or that of the first. */
static struct caller *make_place(void)
{
    struct caller *first = &callers[0];

    for (size_t i = 0; i < STEP_CALLERS_MAX; i++) {
        if (callers[i].number && !is_open(&callers[i]))
            forget(&callers[i]);
        if (!callers[i].number)
            return &callers[i];
        if (callers[i].number < first->number)
            first = &callers[i];
    }
    shutdown(first->connection, SHUT_RDWR);
    forget(first);
    return first;
}

void step_callers_note(int connection)
{
    struct caller *caller;
    struct stat status;

    if (!slurmstepd || fstat(connection, &status) < 0)
        return;
    pthread_mutex_lock(&lock);
    caller = make_place();
    *caller = (struct caller){.connection = connection, .socket = status.st_ino, .number = ++last};
    greeting++;
    pthread_mutex_unlock(&lock);
}

static uint32_t number_at(const struct caller *caller, size_t offset)
{
    uint32_t number;

    memcpy(&number, caller->header + offset, sizeof(number));
    return ntohl(number);
}

/* Follow a caller's greeting, and forget who has greeted. Returns false where it is none. */
static bool follow(struct caller *caller, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count && caller->read + i < HEADER_BYTES; i++)
        caller->header[caller->read + i] = bytes[i];
    caller->read += count;
    if (caller->read < HEADER_BYTES)
        return true;
    if (number_at(caller, MAGIC_AT) != MAGIC || number_at(caller, LENGTH_AT) > STEP_CALLERS_GREETING_BYTES)
        return false;
    if (caller->read >= HEADER_BYTES + number_at(caller, LENGTH_AT))
        forget(caller);
    return true;
}

static bool is_allowed(int connection, const void *bytes, size_t count)
{
    bool allowed = true;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < STEP_CALLERS_MAX; i++)
        if (callers[i].number && callers[i].connection == connection) {
            allowed = !is_open(&callers[i]) || follow(&callers[i], bytes, count);
            break;
        }
    pthread_mutex_unlock(&lock);
    return allowed;
}

/* The next library's, where slurmd has one that looks at requests. */
static ssize_t read_next(int descriptor, void *bytes, size_t count)
{
    static ssize_t (*_Atomic next)(int, void *, size_t);

    if (!next)
        next = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    return next ? next(descriptor, bytes, count) : syscall(SYS_read, descriptor, bytes, count);
}

EXPORTED ssize_t read(int descriptor, void *bytes, size_t count)
{
    ssize_t result = read_next(descriptor, bytes, count);

    if (result <= 0 || !greeting || getpid() != slurmstepd ||
        is_allowed(descriptor, bytes, (size_t)result))
        return result;
    shutdown(descriptor, SHUT_RDWR);
    errno = EPROTO;
    return -1;
}
