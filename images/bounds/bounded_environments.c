/*
 * unpackstr_array for slurmctld, by LD_PRELOAD: of the environment or the arguments of a job with more bytes than
 * ENVIRONMENT_MAX nothing is left but "SOPERATOR_TOO_LARGE=<bytes>", for which job_submit.lua refuses the job.
 *
 * slurmctld keeps both until the job has ended, and has no limit for them. job_submit.lua sees no size: it gets an
 * environment by the names of its variables alone.
 *
 * Before slurmctld accepts its first connection, it reads the jobs of its state by the same function. They were let in under
 * the limit of their time and keep all they have: no job_submit.lua sees them again, and they would run without arguments.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define EXPORTED __attribute__((visibility("default")))

/* Of libslurm: memory that it frees. Programs that slurmctld starts have neither. */
#pragma weak slurm_xstrdup
#pragma weak slurm_xfree
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **place);

static int (*unpack)(char ***strings, uint32_t *count, void *buffer);
static int (*take)(int, struct sockaddr *, socklen_t *, int);
static uint64_t limit = UINT64_MAX; /* without a number nothing is refused */
static atomic_bool accepts;

__attribute__((constructor)) static void prepare(void)
{
    const char *most = getenv("ENVIRONMENT_MAX");

    unpack = (int (*)(char ***, uint32_t *, void *))dlsym(RTLD_NEXT, "unpackstr_array");
    take = (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
    if (most)
        limit = strtoull(most, NULL, 10);
}

/* As execve counts them: strings, their ends, and their addresses. */
static uint64_t bytes_of(char *const *strings, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += sizeof(char *) + (strings[i] ? strlen(strings[i]) + 1 : 0);
    return sum;
}

EXPORTED int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    atomic_store(&accepts, 1);
    return take(listener, address, length, flags);
}

EXPORTED int unpackstr_array(char ***strings, uint32_t *count, void *buffer)
{
    int result = unpack ? unpack(strings, count, buffer) : -1;
    uint64_t bytes = result == 0 && *strings ? bytes_of(*strings, *count) : 0;
    char text[64];

    if (bytes <= limit || !atomic_load(&accepts))
        return result;
    for (uint32_t i = 0; i < *count; i++)
        slurm_xfree((void **)&(*strings)[i]);
    snprintf(text, sizeof(text), "SOPERATOR_TOO_LARGE=%llu", (unsigned long long)bytes);
    (*strings)[0] = slurm_xstrdup(text);
    *count = 1;
    return 0;
}
