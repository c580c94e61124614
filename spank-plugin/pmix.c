#include "pmix.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "numbers.h"

#define SERVER "/stepd.slurm.pmix." /* Slurm: mpi/pmix, pmixp_info.c */
#define DIGITS "0123456789"

struct search {
    const char *spool;
    char *name;
};

/* Whether `text` is <job>.<step>. */
static int is_step(const char *text)
{
    size_t job = strspn(text, DIGITS);

    return job > 0 && text[job] == '.' && strspn(text + job + 1, DIGITS) > 0 &&
           text[job + 1 + strspn(text + job + 1, DIGITS)] == '\0';
}

static int see_descriptor(int descriptor, int reading, void *context)
{
    const struct search *search = context;
    struct sockaddr_un address = {.sun_family = AF_UNSPEC};
    char path[sizeof(address.sun_path) + 1];
    socklen_t length = sizeof(address);
    size_t prefix = strlen(search->spool);

    if (descriptor == reading || getsockname(descriptor, (struct sockaddr *)&address, &length) < 0 ||
        address.sun_family != AF_UNIX)
        return 0;
    snprintf(path, sizeof(path), "%.*s", (int)sizeof(address.sun_path), address.sun_path);
    if (strncmp(path, search->spool, prefix) != 0 || strncmp(path + prefix, SERVER, strlen(SERVER)) != 0 ||
        !is_step(path + prefix + strlen(SERVER)))
        return 0;
    snprintf(search->name, PMIX_NAME_SIZE, "pmix.%.40s", path + prefix + strlen(SERVER));
    return 1;
}

int pmix_folder(const char *spool, uint32_t job_id, uint32_t step_id, char name[PMIX_NAME_SIZE],
                struct failure *failure)
{
    struct search search = {.spool = spool, .name = name};

    snprintf(name, PMIX_NAME_SIZE, "pmix.%d.%d", (int)job_id, (int)step_id); /* as Slurm writes a batch step's too */
    return numbers_each("/proc/self/fd", see_descriptor, &search) < 0 ? fail(failure, "read", "/proc/self/fd") : 0;
}
