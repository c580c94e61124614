/*
 * accept4 for slurmctld, slurmdbd, and slurmd, by LD_PRELOAD: beyond CONNECTIONS_MAX of them, the address that has most
 * connections loses its oldest one. None loses its only one, as slurmctld's to slurmdbd and slurmdbd's to slurmctld, which
 * stay open.
 *
 * slurmctld 24.11 waits for ever for a message that does not come. slurmdbd gives every connection one of its hundred
 * threads, and slurmd one of its 256 until MessageTimeout: who holds enough of them keeps everybody else out. A connection
 * is lost by an end of file in place of further requests. A request that has come already is answered.
 *
 * Who does not read an answer holds its thread all the same. So a lost connection counts until the daemon has closed it:
 * of more than an eighth of CONNECTIONS_MAX, the one that was lost first is cut off from its answer.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* A daemon that opens more files has connections that are not counted. */
#define MOST_FILES 65536

/* Lost connections are at most the eighth part of the limit: together they are fewer than slurmdbd's threads. */
#define LOST_PART 8

/* Addresses that share a group share its connections: nobody chooses the address of a pod. */
#define GROUPS 4096
#define ANY_GROUP GROUPS

/* The connections of a kind, by their descriptors. */
struct connections {
    _Atomic uint64_t numbers[MOST_FILES]; /* counted from 1, or 0 without a connection */
    _Atomic int count;
};

static struct connections whole; /* requests are read from them */
static struct connections lost;  /* answers alone are written to them */

static uint16_t groups[MOST_FILES]; /* by descriptor: the group of the address */
static int highest;                 /* descriptor that was a connection */
static uint64_t last;               /* number */
static pthread_mutex_t accepting = PTHREAD_MUTEX_INITIALIZER;

static uint16_t group_of(const struct sockaddr_storage *peer)
{
    const unsigned char *bytes;
    size_t length;
    uint32_t hash = 2166136261u; /* FNV-1a */

    if (peer->ss_family == AF_INET6) {
        bytes = (const unsigned char *)&((const struct sockaddr_in6 *)peer)->sin6_addr;
        length = sizeof(struct in6_addr);
    } else {
        bytes = (const unsigned char *)&((const struct sockaddr_in *)peer)->sin_addr;
        length = sizeof(struct in_addr);
    }
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return (uint16_t)((hash ^ (hash >> 16)) % GROUPS);
}

/* True if the descriptor was a connection of the kind until now. */
static int forget(struct connections *kind, int descriptor)
{
    if (descriptor < 0 || descriptor >= MOST_FILES || !atomic_exchange(&kind->numbers[descriptor], 0))
        return 0;
    atomic_fetch_sub(&kind->count, 1);
    return 1;
}

/* Returns how many of the kind there were before. */
static int remember(struct connections *kind, int descriptor)
{
    kind->numbers[descriptor] = ++last;
    return atomic_fetch_add(&kind->count, 1);
}

/* -1 if no address has two connections. */
static int largest_group(void)
{
    static uint32_t sizes[GROUPS];
    int largest = 0;

    for (int group = 0; group < GROUPS; group++)
        sizes[group] = 0;
    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        if (whole.numbers[descriptor] && ++sizes[groups[descriptor]] > sizes[largest])
            largest = groups[descriptor];
    }
    return sizes[largest] > 1 ? largest : -1;
}

/* Of a group, or of all with ANY_GROUP; -1 if there is none. */
static int oldest_of(const struct connections *kind, int group)
{
    uint64_t least = UINT64_MAX;
    int oldest = -1;

    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        uint64_t number = kind->numbers[descriptor];

        if (number && number < least && (group == ANY_GROUP || groups[descriptor] == group)) {
            least = number;
            oldest = descriptor;
        }
    }
    return oldest;
}

/* Ends the requests of a connection, and of more than so many lost ones the answer of the first. */
static void lose(int descriptor, int most)
{
    int others;

    if (descriptor < 0)
        return;
    others = remember(&lost, descriptor); /* before, as close() may come in between */
    if (!forget(&whole, descriptor)) {
        forget(&lost, descriptor);
        return;
    }
    shutdown(descriptor, SHUT_RD);
    if (others >= most) {
        int first = oldest_of(&lost, ANY_GROUP);

        if (forget(&lost, first))
            shutdown(first, SHUT_RDWR);
    }
}

static void add(int descriptor, int most)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    if (descriptor >= MOST_FILES || getpeername(descriptor, (struct sockaddr *)&peer, &length) ||
        (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
        return;
    pthread_mutex_lock(&accepting);
    forget(&whole, descriptor); /* one that was closed by another way than close() */
    forget(&lost, descriptor);
    groups[descriptor] = group_of(&peer);
    if (descriptor > highest)
        highest = descriptor;
    if (remember(&whole, descriptor) >= most)
        lose(oldest_of(&whole, largest_group()), most / LOST_PART);
    pthread_mutex_unlock(&accepting);
}

static int (*take)(int, struct sockaddr *, socklen_t *, int);
static int limit; /* 0: none */

__attribute__((constructor)) static void prepare(void)
{
    const char *most = getenv("CONNECTIONS_MAX");

    take = (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
    if (most)
        limit = atoi(most);
}

EXPORTED int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    int descriptor = take(listener, address, length, flags);

    if (descriptor >= 0 && limit > 0)
        add(descriptor, limit);
    return descriptor;
}

/* The system call itself: other libraries close files before the constructor, and children between fork and exec. */
EXPORTED int close(int descriptor)
{
    forget(&whole, descriptor);
    forget(&lost, descriptor);
    return (int)syscall(SYS_close, descriptor);
}
