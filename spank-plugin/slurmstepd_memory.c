#include "slurmstepd_memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_CGROUPS "/proc/self/cgroup"
#define CONTROLLER ":memory:"
#define LIMIT "memory.limit_in_bytes"
#define PROCESSES "cgroup.procs"
#define THIS_PROCESS "0"
#define SHARE 8

/* Put the path of the step's memory cgroup, below the mounts, into `path`. Returns false where it has none. */
static bool find_step(uint32_t job_id, char path[PATH_MAX])
{
    char line[PATH_MAX + 64], step[32];
    FILE *cgroups = fopen(OWN_CGROUPS, "re");
    char *found = NULL;

    if (!cgroups)
        return false;
    snprintf(step, sizeof(step), "/job_%" PRIu32 "/step_", job_id);
    while (!found && fgets(line, sizeof(line), cgroups))
        if ((found = strstr(line, CONTROLLER)))
            found += strlen(CONTROLLER);
    fclose(cgroups);
    if (!found || !strstr(found, step))
        return false;
    found[strcspn(found, "\n")] = '\0';
    return snprintf(path, PATH_MAX, "%s", found) < PATH_MAX;
}

static int write_to(int directory, const char *name, const char *text)
{
    int file = openat(directory, name, O_WRONLY | O_CLOEXEC);
    ssize_t written;

    if (file < 0)
        return -1;
    written = write(file, text, strlen(text));
    close(file);
    return written < 0 ? -1 : 0;
}

/* Give the step less than it has; a limit that is none stays. Returns 0 or -1. */
static int lower(int step)
{
    char text[32] = "";
    int file = openat(step, LIMIT, O_RDONLY | O_CLOEXEC);
    uint64_t limit;

    if (file < 0)
        return -1;
    if (read(file, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    close(file);
    limit = strtoull(text, NULL, 10);
    limit -= limit / SHARE < SLURMSTEPD_MEMORY_BYTES ? limit / SHARE : SLURMSTEPD_MEMORY_BYTES;
    snprintf(text, sizeof(text), "%" PRIu64, limit);
    return write_to(step, LIMIT, text);
}

int slurmstepd_memory_reserve(const char *cgroups, uint32_t job_id, struct failure *failure)
{
    char path[PATH_MAX], whole[2 * PATH_MAX];
    int step, result;

    if (!find_step(job_id, path))
        return 0;
    snprintf(whole, sizeof(whole), "%s/memory%s", cgroups, path);
    if ((step = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return fail(failure, "open", path);
    result = lower(step) < 0 || write_to(step, "../" PROCESSES, THIS_PROCESS) < 0;
    if (result)
        fail(failure, "make room for slurmstepd in", path);
    close(step);
    return result ? -1 : 0;
}
