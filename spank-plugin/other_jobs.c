#include "other_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "numeric_entries.h"

#define NOT_HERE 10
#define HERE 11

static bool is_on(char *nodes, const char *node)
{
    struct hostlist *list = slurm_hostlist_create(nodes);
    bool found = list && slurm_hostlist_find(list, node) >= 0;

    if (list)
        slurm_hostlist_destroy(list);
    return found;
}

/* Return 1 for a slurmstepd of the job in `context`. A user may give a process any title, root's processes are Slurm's. */
static int manages_step(int process, int reading, void *context)
{
    const char *title = context;
    char path[32], found[64] = "";
    struct stat status;
    int file;

    /* The directory is the process's user's; files in it may be root's, for a process that nobody may dump (proc(5)). */
    snprintf(path, sizeof(path), "%d", process);
    if (fstatat(reading, path, &status, 0) < 0 || status.st_uid != 0)
        return 0;
    snprintf(path, sizeof(path), "%d/cmdline", process);
    if ((file = openat(reading, path, O_RDONLY | O_CLOEXEC)) < 0)
        return 0; /* it has ended */
    if (read(file, found, sizeof(found) - 1) < 0)
        found[0] = '\0';
    close(file);
    return strncmp(found, title, strlen(title)) == 0;
}

/* A job whose time is over, or that is cancelled, completes: its processes have KillWait left (slurm.conf(5)), to save
 * what they have. When its own epilog runs, its last slurmstepd has ended. */
static bool has_step(uint32_t job_id)
{
    char title[32];

    snprintf(title, sizeof(title), "slurmstepd: [%u.", job_id);
    return numeric_entries_each("/proc", manages_step, title) != 0;
}

static bool is_at_work(const slurm_job_info_t *job)
{
    uint32_t state = job->job_state & JOB_STATE_BASE;

    if (state == JOB_RUNNING || state == JOB_SUSPENDED)
        return true;
    return (job->job_state & JOB_COMPLETING) && has_step(job->job_id);
}

static bool are_here(uid_t user, uint32_t job_id)
{
    char node[HOST_NAME_MAX + 1];
    job_info_msg_t *jobs = NULL;
    bool found = false;

    /* A pod's host name is its node's name. */
    if (gethostname(node, sizeof(node)) < 0 || slurm_load_job_user(&jobs, user, SHOW_ALL | SHOW_LOCAL) != 0)
        return true;
    for (uint32_t i = 0; i < jobs->record_count && !found; i++) {
        const slurm_job_info_t *job = &jobs->job_array[i];

        found = job->job_id != job_id && job->nodes && is_on(job->nodes, node) && is_at_work(job);
    }
    slurm_free_job_info_msg(jobs);
    return found;
}

bool other_jobs_here(uid_t user, uint32_t job_id)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        slurm_init(NULL); /* slurmstepd has not done it for an epilog; it ends the process where it cannot */
        _exit(are_here(user, job_id) ? HERE : NOT_HERE);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return true;
    return child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != NOT_HERE;
}
