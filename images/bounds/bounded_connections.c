/*
 * accept4 for slurmctld and slurmdbd, by LD_PRELOAD: beyond CONNECTIONS_MAX of them, the address that has most connections
 * loses its oldest one. None loses its only one, as slurmctld's to slurmdbd and slurmdbd's to slurmctld, which stay open.
 *
 * slurmctld 24.11 waits for ever for a message that does not come, and slurmdbd gives every connection one of its hundred
 * threads: who holds enough of them keeps everybody else out. A connection is lost by an end of file in place of further
 * requests. A request that has come already is answered.
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

/* Addresses that share a group share its connections: nobody chooses the address of a pod. */
#define GROUPS 4096

/* Of a descriptor: the number of its connection, counted from 1, or 0; and the group of its address. */
static _Atomic uint64_t numbers[MOST_FILES];
static uint16_t groups[MOST_FILES];

static _Atomic int open_connections;
static int highest;   /* descriptor that was a connection */
static uint64_t last; /* number */
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

/* True if the descriptor was a connection until now. */
static int forget(int descriptor)
{
    if (descriptor < 0 || descriptor >= MOST_FILES || !atomic_exchange(&numbers[descriptor], 0))
        return 0;
    atomic_fetch_sub(&open_connections, 1);
    return 1;
}

/* -1 if no address has two connections. */
static int largest_group(void)
{
    static uint32_t sizes[GROUPS];
    int largest = 0;

    for (int group = 0; group < GROUPS; group++)
        sizes[group] = 0;
    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        if (numbers[descriptor] && ++sizes[groups[descriptor]] > sizes[largest])
            largest = groups[descriptor];
    }
    return sizes[largest] > 1 ? largest : -1;
}

static int oldest_of(int group)
{
    uint64_t least = UINT64_MAX;
    int oldest = -1;

    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        uint64_t number = numbers[descriptor];

        if (number && number < least && groups[descriptor] == group) {
            least = number;
            oldest = descriptor;
        }
    }
    return oldest;
}

static void add(int descriptor, int most)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    if (descriptor >= MOST_FILES || getpeername(descriptor, (struct sockaddr *)&peer, &length) ||
        (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
        return;
    pthread_mutex_lock(&accepting);
    forget(descriptor); /* one that was closed by another way than close() */
    groups[descriptor] = group_of(&peer);
    numbers[descriptor] = ++last;
    if (descriptor > highest)
        highest = descriptor;
    if (atomic_fetch_add(&open_connections, 1) >= most) {
        int oldest = oldest_of(largest_group());

        if (forget(oldest))
            shutdown(oldest, SHUT_RD);
    }
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
    forget(descriptor);
    return (int)syscall(SYS_close, descriptor);
}
