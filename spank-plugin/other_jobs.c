#include "other_jobs.h"

#include <errno.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <sys/wait.h>
#include <unistd.h>

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
        uint32_t state = job->job_state & JOB_STATE_BASE;

        found = job->job_id != job_id && (state == JOB_RUNNING || state == JOB_SUSPENDED) && job->nodes &&
                is_on(job->nodes, node);
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
