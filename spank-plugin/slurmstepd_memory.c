#include "slurmstepd_memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/oom.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES "cgroup.procs"
#define THIS_PROCESS "0"
#define SHARE 8

/* How a version of cgroups names what is needed here. Paths are relative to slurmstepd's own cgroup. */
struct version {
    const char *controller; /* in the file of a process's cgroups */
    const char *mount;
    const char *limit;
    const char *tasks;   /* the cgroup of the step's tasks */
    const char *move_to; /* cgroup that slurmstepd moves to, or NULL */
};

static const struct version FIRST = {":memory:", "/memory", "memory.limit_in_bytes", ".", ".."};
static const struct version SECOND = {"0::", "", "memory.max", "../user", NULL};

/* Put the path of slurmstepd's cgroup below its mount into `path`. Returns false if the step has none. */
static bool find_own(const char *cgroups_of_process, const char *controller, uint32_t job_id, char path[PATH_MAX])
{
    char line[PATH_MAX + 64], step[32];
    FILE *cgroups = fopen(cgroups_of_process, "re");
    char *found = NULL;

    if (!cgroups)
        return false;
    snprintf(step, sizeof(step), "/job_%" PRIu32 "/step_", job_id);
    while (!found && fgets(line, sizeof(line), cgroups))
        if ((found = strstr(line, controller)))
            found += strlen(controller);
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

/* Put a cgroup's limit into `bytes`: UINT64_MAX without one. Returns 0 or -1. */
static int read_limit(int directory, const char *name, uint64_t *bytes)
{
    char text[32] = "", *end;
    int file = openat(directory, name, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return -1;
    if (read(file, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    close(file);
    *bytes = strtoull(text, &end, 10);
    if (end == text)
        *bytes = UINT64_MAX;
    return 0;
}

/* Give the tasks less than the step has. Returns 0 or -1. */
static int lower(int own, const struct version *version)
{
    static const char *const LIMITED[] = {"", "../", "../../"}; /* the tasks, and on the way to the job */
    char name[64], text[32];
    uint64_t least = UINT64_MAX, limit;

    for (size_t i = 0; i < sizeof(LIMITED) / sizeof(*LIMITED); i++) {
        snprintf(name, sizeof(name), "%s/%s%s", version->tasks, LIMITED[i], version->limit);
        if (read_limit(own, name, &limit) < 0)
            return -1;
        least = limit < least ? limit : least;
    }
    if (least == UINT64_MAX)
        return 0;
    least -= least / SHARE < SLURMSTEPD_MEMORY_BYTES ? least / SHARE : SLURMSTEPD_MEMORY_BYTES;
    snprintf(text, sizeof(text), "%" PRIu64, least);
    snprintf(name, sizeof(name), "%s/%s", version->tasks, version->limit);
    return write_to(own, name, text);
}

static int reserve(const char *cgroups, const char *path, const struct version *version, struct failure *failure)
{
    char whole[2 * PATH_MAX], processes[64];
    int own, result;

    snprintf(whole, sizeof(whole), "%s%s%s", cgroups, version->mount, path);
    if ((own = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return fail(failure, "open", path);
    result = lower(own, version);
    if (result == 0 && version->move_to) {
        snprintf(processes, sizeof(processes), "%s/" PROCESSES, version->move_to);
        result = write_to(own, processes, THIS_PROCESS);
    }
    if (result < 0)
        fail(failure, "make room for slurmstepd in", path);
    close(own);
    return result;
}

int slurmstepd_memory_reserve(const char *cgroups, const char *cgroups_of_process, uint32_t job_id,
                              struct failure *failure)
{
    char path[PATH_MAX];

    if (find_own(cgroups_of_process, FIRST.controller, job_id, path))
        return reserve(cgroups, path, &FIRST, failure);
    if (find_own(cgroups_of_process, SECOND.controller, job_id, path))
        return reserve(cgroups, path, &SECOND, failure);
    return 0;
}

static int read_score(const char *path, int *score)
{
    FILE *file = fopen(path, "re");
    int result;

    if (!file)
        return -1;
    result = fscanf(file, "%d", score) == 1 ? 0 : -1;
    fclose(file);
    return result;
}

int slurmstepd_memory_read_score(const char *of_slurmstepd, int *score, struct failure *failure)
{
    return read_score(of_slurmstepd, score) < 0 ? fail(failure, "read", of_slurmstepd) : 0;
}

int slurmstepd_memory_offer_task(int score, const char *of_task, struct failure *failure)
{
    int task, wanted;
    char text[16];

    if (read_score(of_task, &task) < 0)
        return fail(failure, "read", of_task);
    wanted = score + TASK_OOM_SCORE < OOM_SCORE_ADJ_MAX ? score + TASK_OOM_SCORE : OOM_SCORE_ADJ_MAX;
    if (task >= wanted)
        return 0;
    snprintf(text, sizeof(text), "%d", wanted);
    return write_to(AT_FDCWD, of_task, text) < 0 ? fail(failure, "write", of_task) : 0;
}
