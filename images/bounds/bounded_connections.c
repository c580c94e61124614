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
 *
 * An answer that waits for a client which does not read, or reads a few bytes at a time, also takes memory, with 5,000 jobs
 * 100 MB and more, and slurmctld 24.11 has 64 threads to answer, which wait with it. So it is cut off after READ_SECONDS. Of
 * more than UNREAD_MAX that have waited for UNREAD_SECONDS, the address with most of them loses the oldest one.
 *
 * Slurm reads requests of 1 GiB into memory, of everyone and from all connections at a time, before it looks at them. With
 * REQUEST_BYTES_MAX, requests that are not read to their end have as many bytes together: beyond that, the address with most
 * of them loses its largest request. One that says that it is longer than half as many is not read.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* A daemon that opens more files has connections that are not counted. */
#define MOST_FILES 65536

/* Lost connections are at most the eighth part of the limit: together they are fewer than slurmdbd's threads. */
#define LOST_PART 8

/* Bytes a second of a client that reads. With fewer, a user could hold all threads for minutes. */
#ifndef READ_BYTES
#define READ_BYTES 524288
#endif

#define UNREAD_MAX 8
#define UNREAD_SECONDS 2
#ifndef READ_SECONDS
#define READ_SECONDS 60
#endif

/* Slurm's own limit of a request. It reads something else, as HTTP, if the length is greater. */
#define SLURMS_REQUEST_BYTES (1u << 30)

/* Bytes after which the sum of all requests is made. */
#define LOOK_BYTES (1u << 20)

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

/* A request is its length, in network order, and as many bytes. */
struct request {
    unsigned char length[sizeof(uint32_t)];
    unsigned char length_bytes; /* read of it */
    uint32_t left;              /* bytes */
    _Atomic uint32_t read;      /* bytes; 0 after the end */
};

static struct request requests[MOST_FILES]; /* by descriptor */

static uint16_t groups[MOST_FILES];      /* by descriptor: the group of the address */
static time_t unread_since[MOST_FILES]; /* by descriptor: of an answer, or 0 */
static uint64_t arrived[MOST_FILES];    /* by descriptor: bytes of answers at the last look */
static int highest;                     /* descriptor that was a connection */
static uint64_t last;                   /* number */
static time_t last_look;
static pthread_mutex_t accepting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_connected = PTHREAD_COND_INITIALIZER;

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

/* Of connections, those of which a condition is true. */
typedef int (*condition)(int descriptor);

static int is_whole(int descriptor)
{
    return whole.numbers[descriptor] != 0;
}

static int is_lost(int descriptor)
{
    return lost.numbers[descriptor] != 0;
}

static int is_unread(int descriptor)
{
    return unread_since[descriptor] && last_look - unread_since[descriptor] >= UNREAD_SECONDS;
}

/* -1 if no address has two connections. */
static int largest_group(condition is)
{
    static uint32_t sizes[GROUPS];
    int largest = 0;

    for (int group = 0; group < GROUPS; group++)
        sizes[group] = 0;
    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        if (is(descriptor) && ++sizes[groups[descriptor]] > sizes[largest])
            largest = groups[descriptor];
    }
    return sizes[largest] > 1 ? largest : -1;
}

/* Of a group, or of all with ANY_GROUP; -1 if there is none. */
static int oldest_of(condition is, int group)
{
    uint64_t least = UINT64_MAX;
    int oldest = -1;

    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        uint64_t number = is_whole(descriptor) ? whole.numbers[descriptor] : lost.numbers[descriptor];

        if (is(descriptor) && number < least && (group == ANY_GROUP || groups[descriptor] == group)) {
            least = number;
            oldest = descriptor;
        }
    }
    return oldest;
}

/* Cuts a connection off from its answer, of which the kernel keeps nothing either. */
static void cut_off(int descriptor)
{
    const struct linger nothing = {.l_onoff = 1};

    if (forget(&whole, descriptor) | forget(&lost, descriptor)) {
        unread_since[descriptor] = 0;
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &nothing, sizeof(nothing));
        shutdown(descriptor, SHUT_RDWR);
    }
}

/* True if the client has read on since the last look. */
static int reads_on(int descriptor)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof(info);
    uint64_t before = arrived[descriptor];

    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return 0;
    arrived[descriptor] = info.tcpi_bytes_acked;
    return info.tcpi_bytes_acked >= before + READ_BYTES;
}

/* Cuts off the answers that have waited for too long to be read. */
static void look_at_answers(void)
{
    struct timespec now;
    int waiting, descriptor, unread = 0;

    clock_gettime(CLOCK_MONOTONIC, &now);
    last_look = now.tv_sec;
    for (descriptor = 0; descriptor <= highest; descriptor++) {
        if ((!is_whole(descriptor) && !is_lost(descriptor)) || ioctl(descriptor, SIOCOUTQ, &waiting) < 0 || !waiting)
            unread_since[descriptor] = 0;
        else if (reads_on(descriptor) || !unread_since[descriptor])
            unread_since[descriptor] = last_look;
        else if (last_look - unread_since[descriptor] >= READ_SECONDS)
            cut_off(descriptor);
        unread += is_unread(descriptor);
    }
    for (; unread > UNREAD_MAX && (descriptor = oldest_of(is_unread, largest_group(is_unread))) >= 0; unread--)
        cut_off(descriptor);
}

/* A thread of its own, as those that accept may be the ones that wait. It rests while there are no connections. */
static void *look_for_ever(void *unused)
{
    const struct timespec pause = {.tv_sec = 1};

    (void)unused;
    pthread_mutex_lock(&accepting);
    for (;;) {
        while (!whole.count && !lost.count)
            pthread_cond_wait(&is_connected, &accepting);
        pthread_mutex_unlock(&accepting);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&accepting);
        look_at_answers();
    }
    return NULL;
}

/* Not before the first connection: a daemon may have forked until then. Signals are for the daemon's own threads. */
static void start_looking(void)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&thread, NULL, look_for_ever, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
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
    if (others >= most)
        cut_off(oldest_of(is_lost, ANY_GROUP));
}

static void add(int descriptor, int most)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    if (descriptor >= MOST_FILES || getpeername(descriptor, (struct sockaddr *)&peer, &length) ||
        (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
        return;
    pthread_once(&once, start_looking);
    pthread_mutex_lock(&accepting);
    forget(&whole, descriptor); /* one that was closed by another way than close() */
    forget(&lost, descriptor);
    unread_since[descriptor] = 0;
    arrived[descriptor] = 0;
    memset(&requests[descriptor], 0, sizeof(requests[descriptor]));
    groups[descriptor] = group_of(&peer);
    if (descriptor > highest)
        highest = descriptor;
    if (remember(&whole, descriptor) >= most)
        lose(oldest_of(is_whole, largest_group(is_whole)), most / LOST_PART);
    pthread_cond_signal(&is_connected);
    pthread_mutex_unlock(&accepting);
}

static int (*take)(int, struct sockaddr *, socklen_t *, int);
static int limit;           /* 0: none */
static uint64_t most_bytes; /* 0: no limit */

__attribute__((constructor)) static void prepare(void)
{
    const char *most = getenv("CONNECTIONS_MAX"), *bytes = getenv("REQUEST_BYTES_MAX");

    take = (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
    /* slurmstepd has slurmd's variables, and a connection for every process of PMIx. */
    if (most && strcmp(program_invocation_short_name, "slurmstepd") != 0)
        limit = atoi(most);
    if (limit > 0 && bytes)
        most_bytes = strtoull(bytes, NULL, 10);
}

EXPORTED int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    int descriptor = take(listener, address, length, flags);

    if (descriptor >= 0 && limit > 0)
        add(descriptor, limit);
    return descriptor;
}

static uint32_t bytes_of(int descriptor)
{
    return is_whole(descriptor) || is_lost(descriptor) ? requests[descriptor].read : 0;
}

/* Of the address whose requests have most bytes; -1 if all together have no more than the limit. */
static int largest_request(void)
{
    static uint64_t sums[GROUPS];
    uint64_t all = 0;
    int heaviest = 0, largest = -1;

    memset(sums, 0, sizeof(sums));
    for (int descriptor = 0; descriptor <= highest; descriptor++) {
        all += bytes_of(descriptor);
        sums[groups[descriptor]] += bytes_of(descriptor);
        if (sums[groups[descriptor]] > sums[heaviest])
            heaviest = groups[descriptor];
    }
    for (int descriptor = 0; all > most_bytes && descriptor <= highest; descriptor++)
        if (groups[descriptor] == heaviest && (largest < 0 || bytes_of(descriptor) > bytes_of(largest)))
            largest = descriptor;
    return largest;
}

/* Follows a connection from request to request. Returns 0 if one of them is too long. */
static int follow(struct request *request, const unsigned char *bytes, size_t count)
{
    uint32_t length, part;

    for (; count; count -= part, bytes += part) {
        if (request->left) {
            part = count < request->left ? (uint32_t)count : request->left;
            request->left -= part;
            request->read = request->left ? request->read + part : 0;
            continue;
        }
        part = 1;
        request->length[request->length_bytes++] = *bytes;
        if (request->length_bytes < sizeof(length))
            continue;
        memcpy(&length, request->length, sizeof(length));
        request->length_bytes = 0;
        request->left = ntohl(length);
        if (request->left > most_bytes / 2 && request->left <= SLURMS_REQUEST_BYTES)
            return 0;
    }
    return 1;
}

static void bound_requests(int descriptor, const void *bytes, size_t count)
{
    struct request *request = &requests[descriptor];
    uint32_t before = request->read;
    int is_short = follow(request, bytes, count), largest;

    if (is_short && request->read / LOOK_BYTES == before / LOOK_BYTES)
        return;
    pthread_mutex_lock(&accepting);
    if (!is_short)
        cut_off(descriptor);
    while ((largest = largest_request()) >= 0)
        cut_off(largest);
    pthread_mutex_unlock(&accepting);
}

static int is_bounded(int descriptor)
{
    return most_bytes && descriptor >= 0 && descriptor < MOST_FILES && (is_whole(descriptor) || is_lost(descriptor));
}

/* The system calls themselves: other libraries call these before the constructor, and children between fork and exec. */
EXPORTED ssize_t read(int descriptor, void *bytes, size_t count)
{
    ssize_t result = syscall(SYS_read, descriptor, bytes, count);

    if (result > 0 && is_bounded(descriptor))
        bound_requests(descriptor, bytes, (size_t)result);
    return result;
}

EXPORTED ssize_t recv(int descriptor, void *bytes, size_t count, int flags)
{
    ssize_t result = syscall(SYS_recvfrom, descriptor, bytes, count, flags, NULL, NULL);

    if (result > 0 && !(flags & MSG_PEEK) && is_bounded(descriptor))
        bound_requests(descriptor, bytes, (size_t)result);
    return result;
}

EXPORTED int close(int descriptor)
{
    forget(&whole, descriptor);
    forget(&lost, descriptor);
    return (int)syscall(SYS_close, descriptor);
}
