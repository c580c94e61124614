/*
 * slurm_send_only_node_msg and poll for slurmctld, by LD_PRELOAD: clients that take no message hold none of its threads.
 *
 * slurmctld tells srun and salloc of what concerns their jobs, with three of its 256 threads for every message, and Slurm 24.11
 * and 26.05 wait for MessageTimeout (30 s) until the client has read it. The same threads start jobs on nodes and end them. So a
 * stopped salloc and a hundred `scontrol notify` kept all other jobs from starting.
 *
 * Here, a client has CLIENT_MILLISECONDS to accept the connection, and again to read, and CLIENT_MILLISECONDS_MIN if more than
 * CLIENTS_MAX are waited for. One that reads later has its message all the same: the kernel keeps what is sent, and slurmctld
 * does nothing with the failure, except that an answer to a ping (InactiveLimit) is none.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

enum { ALLOCATED = 4002, TO_CLIENTS = 7001, TO_CLIENTS_LAST = 7099 }; /* RESPONSE_RESOURCE_ALLOCATION and SRUN_* of msg_type.h */

#define CLIENTS_MAX 16 /* a fifth of the threads */
#define CLIENT_MILLISECONDS 5000
#define CLIENT_MILLISECONDS_MIN 100
#define UNBOUNDED (-1)

static size_t type_offset; /* bytes in slurm_msg_t before its type */
static int (*send_only)(void *message);
static _Atomic int clients;
static _Thread_local int milliseconds_max = UNBOUNDED;

__attribute__((constructor)) static void prepare(void)
{
    send_only = (int (*)(void *))dlsym(RTLD_NEXT, "slurm_send_only_node_msg");
    type_offset = dlsym(RTLD_NEXT, "switch_g_stepinfo_unpack") ? 226 : 212; /* of 26.05 and 24.11 */
}

static bool is_to_client(const void *message)
{
    uint16_t type;

    memcpy(&type, (const char *)message + type_offset, sizeof(type));
    return type == ALLOCATED || (TO_CLIENTS <= type && type <= TO_CLIENTS_LAST);
}

EXPORTED int slurm_send_only_node_msg(void *message)
{
    int result;

    if (!is_to_client(message))
        return send_only(message);
    milliseconds_max = atomic_fetch_add(&clients, 1) < CLIENTS_MAX ? CLIENT_MILLISECONDS : CLIENT_MILLISECONDS_MIN;
    result = send_only(message);
    milliseconds_max = UNBOUNDED;
    atomic_fetch_sub(&clients, 1);
    return result;
}

/* By ppoll: other libraries may poll before a constructor has looked up libc's function. */
EXPORTED int poll(struct pollfd *descriptors, nfds_t count, int milliseconds)
{
    struct timespec time;

    if (milliseconds_max != UNBOUNDED && (milliseconds < 0 || milliseconds > milliseconds_max))
        milliseconds = milliseconds_max;
    time.tv_sec = milliseconds / 1000;
    time.tv_nsec = milliseconds % 1000 * 1000000L;
    return ppoll(descriptors, count, milliseconds < 0 ? NULL : &time, NULL);
}
