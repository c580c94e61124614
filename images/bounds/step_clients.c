/*
 * slurm_send_recv_rc_msg_only_one for slurmstepd, by LD_PRELOAD: clients that don't answer hold no step.
 *
 * When tasks end, slurmstepd tells every client of its step, srun and all that ever attached to it (sattach), one after the
 * other. Slurm 24.11 and 26.05 ask a client six times, for MessageTimeout (30 s), and keep the step and the job's part of the
 * node meanwhile. Anyone can attach hundreds of clients to an own step that are stopped, or addresses where no client is.
 *
 * Here, a slurmstepd has a minute for failed attempts and for clients that answer for the first time, together. An attempt
 * gets half of what is left of it, so that a client that answers is told after some that don't. Later, only clients that have
 * answered before are told, as srun has when its tasks started: its step would not end for it.
 *
 * A client that has answered before costs nothing if it answers within a second, as srun does on a busy login node. So 16
 * clients that take almost a second hold the step for 16 seconds with every message, which is one for all tasks that have
 * ended with the same status since the last. A client that has answered before and refuses at once, as srun does if too many
 * connections wait, is asked as often as Slurm asks. A tenth of the time between attempts is given back, so that an srun that
 * takes more than a second for every message is told of tasks that end over a longer time.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

enum { LAUNCHED = 6002, TASK_EXIT = 6003 }; /* RESPONSE_LAUNCH_TASKS and MESSAGE_TASK_EXIT of msg_type.h */

#define ATTEMPTS_MAX 2 /* at a client with one message, in a row */
#define WAITED_MILLISECONDS_MAX 60000
#define ATTEMPT_MILLISECONDS_MIN 1000
#define PAUSE_MILLISECONDS 150 /* slurmstepd's, after a failed attempt: 100, and then 200 */
#define QUIET_PER_MILLISECOND 10 /* between attempts, for one that is given back */
#define ANSWERED_MAX 16

/* Bytes in slurm_msg_t before its type. It begins with the address. */
static size_t type_offset;
static int (*ask)(void *request, int *code, int milliseconds);

/* Clients of this step. */
static struct {
    pthread_mutex_t lock;
    struct sockaddr_storage answered[ANSWERED_MAX]; /* the last new ones */
    size_t next;
    struct sockaddr_storage failed; /* the last one that didn't */
    unsigned int attempts;          /* at that one */
    int waited_milliseconds;
    int since; /* milliseconds_now() of the last attempt's end, or of the last quiet that was given back */
} clients = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void prepare(void)
{
    ask = (int (*)(void *, int *, int))dlsym(RTLD_NEXT, "slurm_send_recv_rc_msg_only_one");
    type_offset = dlsym(RTLD_NEXT, "switch_g_stepinfo_unpack") ? 226 : 212; /* of 26.05 and 24.11 */
}

static bool is_same(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
    const struct sockaddr_in *v4 = (const void *)one, *other_v4 = (const void *)other;
    const struct sockaddr_in6 *v6 = (const void *)one, *other_v6 = (const void *)other;

    if (one->ss_family != other->ss_family)
        return false;
    if (one->ss_family == AF_INET6)
        return v6->sin6_port == other_v6->sin6_port && memcmp(&v6->sin6_addr, &other_v6->sin6_addr, sizeof(v6->sin6_addr)) == 0;
    return v4->sin_port == other_v4->sin_port && v4->sin_addr.s_addr == other_v4->sin_addr.s_addr;
}

/* Return the place of a client that has answered, or ANSWERED_MAX. */
static size_t place_of(const struct sockaddr_storage *client)
{
    size_t place = client->ss_family == AF_UNSPEC ? ANSWERED_MAX : 0; /* as unused places are */

    while (place < ANSWERED_MAX && !is_same(&clients.answered[place], client))
        place++;
    return place;
}

static void note_answer(const struct sockaddr_storage *client, int milliseconds)
{
    bool is_new = place_of(client) == ANSWERED_MAX;

    if (is_new)
        clients.answered[clients.next++ % ANSWERED_MAX] = *client;
    if (is_new || milliseconds > ATTEMPT_MILLISECONDS_MIN)
        clients.waited_milliseconds += milliseconds;
    clients.attempts = 0;
}

static void note_failure(const struct sockaddr_storage *client, int milliseconds)
{
    size_t place = place_of(client);

    if (place < ANSWERED_MAX && milliseconds < ATTEMPT_MILLISECONDS_MIN)
        clients.attempts = 0;
    else
        clients.attempts = clients.attempts && is_same(&clients.failed, client) ? clients.attempts + 1 : 1;
    clients.failed = *client;
    clients.waited_milliseconds += milliseconds + PAUSE_MILLISECONDS;
    if (clients.waited_milliseconds >= WAITED_MILLISECONDS_MAX && place < ANSWERED_MAX)
        memset(&clients.answered[place], 0, sizeof(clients.answered[place]));
}

static int milliseconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)((now.tv_sec * 1000 + now.tv_nsec / 1000000) & INT32_MAX);
}

static int milliseconds_since(int moment)
{
    return (milliseconds_now() - moment) & INT32_MAX;
}

static void give_back_quiet(void)
{
    int quiet = milliseconds_since(clients.since), given_back = quiet / QUIET_PER_MILLISECOND;

    if (quiet < ATTEMPT_MILLISECONDS_MIN) /* as slurmstepd's pauses are */
        return;
    clients.since = milliseconds_now();
    clients.waited_milliseconds -= given_back < clients.waited_milliseconds ? given_back : clients.waited_milliseconds;
}

/* Return the time for an attempt, or 0 for none. */
static int time_for(const struct sockaddr_storage *client)
{
    int left = WAITED_MILLISECONDS_MAX - clients.waited_milliseconds;

    if (clients.attempts >= ATTEMPTS_MAX && is_same(&clients.failed, client)) {
        clients.attempts = 0; /* the next message is another one */
        return 0;
    }
    if (left <= 0 && place_of(client) == ANSWERED_MAX)
        return 0;
    return left / 2 > ATTEMPT_MILLISECONDS_MIN ? left / 2 : ATTEMPT_MILLISECONDS_MIN;
}

static int tell(void *request, int *code, int milliseconds)
{
    int started = milliseconds_now(), result = ask(request, code, milliseconds);
    int taken = milliseconds_since(started);

    pthread_mutex_lock(&clients.lock);
    clients.since = milliseconds_now();
    if (result != 0 || *code != 0)
        note_failure(request, taken);
    else
        note_answer(request, taken);
    pthread_mutex_unlock(&clients.lock);
    return result;
}

static int tell_launched(void *request, int *code, int milliseconds)
{
    int result = ask(request, code, milliseconds);

    if (result == 0 && *code == 0) {
        pthread_mutex_lock(&clients.lock);
        note_answer(request, 0);
        pthread_mutex_unlock(&clients.lock);
    }
    return result;
}

static int tell_exit(void *request, int *code)
{
    int milliseconds;

    pthread_mutex_lock(&clients.lock);
    give_back_quiet();
    milliseconds = time_for(request);
    pthread_mutex_unlock(&clients.lock);
    if (milliseconds)
        return tell(request, code, milliseconds);
    *code = 0;
    return 0; /* slurmstepd tries again after a failure */
}

EXPORTED int slurm_send_recv_rc_msg_only_one(void *request, int *code, int milliseconds)
{
    uint16_t type;

    memcpy(&type, (const char *)request + type_offset, sizeof(type));
    if (type == LAUNCHED)
        return tell_launched(request, code, milliseconds);
    return type == TASK_EXIT ? tell_exit(request, code) : ask(request, code, milliseconds);
}
