/*
 * slurm_send_recv_rc_msg_only_one for slurmstepd, by LD_PRELOAD: it waits for lost clients of a step for a minute or two at
 * most, not for every one of them.
 *
 * slurmstepd tells every client that has attached to a step about its tasks, and asks those that do not answer six times. A
 * user can attach any number of clients that never answer: the step would not end for hours, with its part of the node.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

/* For clients: RESPONSE_LAUNCH_TASKS and MESSAGE_TASK_EXIT. */
#define FIRST_TYPE 6002
#define LAST_TYPE 6003

/* Bytes before the type in slurm_msg_t. */
#define TYPE_IN_24 212
#define TYPE_IN_26 226

/* In one of them, an answer comes within MessageTimeout (30 s). slurmstepd itself waits for up to a second before the next. */
#ifndef LOST_SECONDS
#define LOST_SECONDS 60
#endif
#define PAUSE_SECONDS 1

static int (*ask)(const char *request, int *code, int milliseconds);
static size_t type_at;
static _Atomic long long lost; /* seconds */

__attribute__((constructor)) static void prepare(void)
{
    ask = (int (*)(const char *, int *, int))dlsym(RTLD_NEXT, "slurm_send_recv_rc_msg_only_one");
    type_at = dlsym(RTLD_NEXT, "switch_g_stepinfo_unpack") ? TYPE_IN_26 : TYPE_IN_24;
}

static long long seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

EXPORTED int slurm_send_recv_rc_msg_only_one(const char *request, int *code, int milliseconds)
{
    uint16_t type = *(const uint16_t *)(request + type_at);
    int is_for_client = FIRST_TYPE <= type && type <= LAST_TYPE, result;
    long long before = seconds();

    if (is_for_client && lost >= LOST_SECONDS)
        return *code = 0; /* with another code, slurmstepd waits and asks again */
    result = ask(request, code, milliseconds);
    if (is_for_client && (result != 0 || *code != 0))
        lost += seconds() - before + PAUSE_SECONDS;
    return result;
}
