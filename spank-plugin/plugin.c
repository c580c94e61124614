/*
 * The SPANK plugin: moves every task of every job into the jail, or does not let it start.
 *
 * plugstack.conf:  required /opt/slurm/lib/slurm/spank_jail.so jail=/jail bind=/home ...      (config.h)
 *
 * It has to be `required`: an optional plugin that fails is passed over, and the job would run outside.
 * Slurm calls, in slurmstepd: init, init_post_opt, and with the user as effective user user_init; then in each task, a
 * forked child: task_init_privileged as root, task_init as the user, exec; in slurmstepd again: task_post_fork (after
 * last fork, once a task), task_exit, exit; and when a job has ended on the node, in a process of its own: job_epilog.
 * Whatever goes wrong before, a task finds it in task_init_privileged and ends there, with a message that srun shows or
 * the batch job's output file has. In srun itself it calls local_user_init, before srun opens files.
 */
#include <errno.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "config.h"
#include "confine.h"
#include "container_step.h"
#include "descriptors.h"
#include "enter_view.h"
#include "found_image.h"
#include "isolation.h"
#include "node_environment.h"
#include "other_jobs.h"
#include "report.h"
#include "slurmstepd_memory.h"
#include "srun_input.h"
#include "start_deadline.h"
#include "start_signals.h"
#include "step_callers.h"
#include "step_peers.h"
#include "tree.h"
#include "user_cleanup.h"
#include "view.h"

SPANK_PLUGIN(jail, 1);

static struct jail_config config;
static struct isolation isolation = ISOLATION_NONE;
static struct failure startup_failure = {FAILURE_NODE, "configuration: not read"}; /* what tasks find */
static int score_of_slurmstepd; /* its oom_score_adj: a task with its own process IDs can't ask for it */
static char working_directory[PATH_MAX];
static struct shared_mounts shared_mounts; /* in a task: where job files may lie */
static int tasks; /* in slurmstepd: those that it has forked and that have not ended */

static int refuse(const struct failure *failure)
{
    slurm_error("jail: %s", failure->text);
    report_failure(failure);
    return -1;
}

/* True in srun, sbatch and salloc. */
static bool is_command(void)
{
    return spank_context() == S_CTX_LOCAL || spank_context() == S_CTX_ALLOCATOR;
}

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
    struct failure failure = {FAILURE_NONE, ""};

    if (is_command() && container_step_register(spank, &failure) < 0)
        slurm_error("jail: %s", failure.text);
    if (spank_context() != S_CTX_REMOTE)
        return 0;
    startup_failure.scope = FAILURE_NONE;
    if (config_load(&config, count, arguments, &startup_failure) == 0)
        container_step_register(spank, &startup_failure);
    if (report_prepare() < 0)
        slurm_error("jail: share memory with tasks: %m");
    return 0;
}

/* Leftovers of the user's last job may be being removed; from now on the user alone is let in to the step. */
static int prepare_for_user(spank_t spank, struct failure *failure)
{
    uid_t user;

    if (spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS)
        return fail_with(failure, FAILURE_NODE, "ask Slurm for the job's user");
    if (!step_peers_are_of)
        return fail_with(failure, FAILURE_NODE, "find open_as_user.so, with which slurmd is started");
    step_peers_are_of(user);
    return user_cleanup_await(user, failure);
}

/*
 * Choose what slurmstepd's plugin for PMIx does as root, and would take from the variables of a user: the folder in which
 * it makes that of a step, whether it writes a log into /tmp, and the order of bytes in what slurmstepds send to each other.
 */
static int direct_pmix(spank_t spank, struct failure *failure)
{
    spank_unsetenv(spank, "PMIX_DEBUG"); /* not set: an error of no matter */
    spank_unsetenv(spank, "SLURM_PMIX_SAMEARCH");
    if (spank_setenv(spank, "SLURM_PMIX_TMPDIR", PMIX_DIRECTORY, 1) == ESPANK_SUCCESS)
        return 0;
    return fail_with(failure, FAILURE_JOB, "set the job's variable SLURM_PMIX_TMPDIR");
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
    struct failure failure = {FAILURE_NONE, ""};
    uint32_t step_id;

    (void)count;
    (void)arguments;
    if (is_command() && container_step_check(&failure) < 0) {
        slurm_error("%s", failure.text);
        return -1;
    }
    if (spank_context() != S_CTX_REMOTE || startup_failure.scope != FAILURE_NONE ||
        start_deadline_set(START_DEADLINE_SECONDS, &startup_failure) < 0 || prepare_for_user(spank, &startup_failure) < 0 ||
        slurmstepd_memory_read_score("/proc/self/oom_score_adj", &score_of_slurmstepd, &startup_failure) < 0 ||
        direct_pmix(spank, &startup_failure) < 0 ||
        container_step_prepare(spank, &config, &startup_failure) < 0)
        return 0;
    if (spank_get_item(spank, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS)
        fail_with(&startup_failure, FAILURE_NODE, "ask Slurm for the step's number");
    if (startup_failure.scope != FAILURE_NONE || step_id == SLURM_EXTERN_CONT) /* which has no tasks */
        return 0;
    step_callers_are_bounded();
    if (start_signals_prepare() < 0)
        slurm_error("jail: share a pipe with tasks: %m");
    if (config.isolate_pid || config.isolate_ipc)
        isolation_start(&isolation, config.isolate_pid, config.isolate_ipc, &startup_failure);
    return 0;
}

int slurm_spank_local_user_init(spank_t spank, int count, char **arguments)
{
    struct failure failure = {FAILURE_NONE, ""};
    char **program;
    int length;

    (void)count;
    (void)arguments;
    if (spank_get_item(spank, S_JOB_ARGV, &length, &program) != ESPANK_SUCCESS || length < 0 ||
        srun_input_prepare_own((size_t)length, &failure) == 0)
        return 0;
    slurm_error("jail: %s", failure.text);
    return -1;
}

int slurm_spank_user_init(spank_t spank, int count, char **arguments)
{
    (void)spank;
    (void)count;
    (void)arguments;
    start_deadline_lift();
    if (startup_failure.scope == FAILURE_NONE)
        isolation_fork(&isolation, true, &startup_failure);
    return 0;
}

int slurm_spank_task_post_fork(spank_t spank, int count, char **arguments)
{
    struct failure failure = {FAILURE_NONE, ""};
    uint32_t job_id;

    (void)count;
    (void)arguments;
    start_signals_await();
    if (tasks++ == 0 && spank_get_item(spank, S_JOB_ID, &job_id) == ESPANK_SUCCESS &&
        slurmstepd_memory_reserve("/sys/fs/cgroup", "/proc/self/cgroup", job_id, &failure) < 0)
        slurm_error("jail: %s", failure.text);
    if (isolation_fork(&isolation, false, &failure) < 0)
        slurm_error("jail: %s", failure.text);
    if (startup_failure.scope == FAILURE_NONE && container_step_track(spank, &failure) < 0)
        slurm_error("jail: %s", failure.text);
    return 0;
}

/* Build the view of the job's tree in a mount namespace of the calling process's own. Returns its root, or -1. */
static int open_jail(void *job_id, struct failure *failure)
{
    struct view view = {.config = &config, .job = true, .job_id = *(const uint32_t *)job_id};
    struct tree tree;
    int claim, root, result;

    if (enter_namespace(failure) < 0 || (claim = claim_open(config.jail, failure)) < 0)
        return -1;
    result = tree_of_job(claim, view.job_id, &tree, failure);
    close(claim);
    if (result < 0)
        return -1;
    view.tree = view.place = tree.fd;
    root = view_build(&view, failure);
    close(tree.fd);
    return root;
}

/* Make the view of the job's tree the root; and then that of a container, where the job wants one. */
static int enter_jail(spank_t spank, uint32_t job_id, struct failure *failure)
{
    int root, result;

    if (isolation_join(&isolation, failure) < 0 || descriptors_note(&shared_mounts, &config, failure) < 0)
        return -1;
    if (container_step_wanted() &&
        container_step_import(spank, &config, working_directory, open_jail, &job_id, failure) < 0)
        return -1;
    if ((root = open_jail(&job_id, failure)) < 0)
        return -1;
    result = enter_root(root, failure);
    close(root);
    if (result < 0 || (container_step_wanted() && container_step_enter(&config, working_directory, failure) < 0))
        return -1;
    if (confine(~UINT64_C(0), config.user_namespaces, failure) < 0)
        return -1;
    return container_step_wanted() ? container_step_confined(failure) : 0;
}

/* Have the kernel kill this task before slurmstepd, if the job has no memory left. */
static void offer_task(void)
{
    struct failure failure = {FAILURE_NONE, ""};

    if (slurmstepd_memory_offer_task(score_of_slurmstepd, "/proc/self/oom_score_adj", &failure) < 0)
        slurm_error("jail: %s", failure.text);
}

int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments)
{
    struct failure failure = {FAILURE_NONE, ""};
    uint32_t job_id;

    (void)count;
    (void)arguments;
    start_signals_accept();
    if (startup_failure.scope != FAILURE_NONE)
        return refuse(&startup_failure);
    if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS) {
        fail_with(&failure, FAILURE_NODE, "ask Slurm for the job's number");
        return refuse(&failure);
    }
    if (!getcwd(working_directory, sizeof(working_directory)) || working_directory[0] != '/') {
        fail_job(&failure, "find out", "the working directory");
        return refuse(&failure);
    }
    container_step_warn(spank);
    offer_task();
    return enter_jail(spank, job_id, &failure) < 0 ? refuse(&failure) : 0;
}

static int set_missing(void *spank, const char *name, const char *value)
{
    spank_err_t result = spank_setenv(spank, name, value, 0);

    return result == ESPANK_SUCCESS || result == ESPANK_ENV_EXISTS ? 0 : -1;
}

static int set_over(void *spank, const char *name, const char *value)
{
    return spank_setenv(spank, name, value, 1) == ESPANK_SUCCESS ? 0 : -1;
}

int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
    struct failure failure = {FAILURE_NONE, ""};

    (void)count;
    (void)arguments;
    /* Only now, as slurmstepd has put the job's files into their places. */
    if (descriptors_check(&shared_mounts, &failure) < 0 ||
        (container_step_wanted() && container_step_settle(set_over, spank, working_directory, &failure) < 0) ||
        node_environment_give(NODE_ENVIRONMENT, set_missing, spank, &failure) < 0)
        return refuse(&failure);
    /* As the user: root may not be let into a home directory. */
    if (chdir(working_directory) < 0) {
        fail_job(&failure, "chdir to", working_directory);
        return refuse(&failure);
    }
    return container_step_wanted() && container_step_begin(spank, set_over, &failure) < 0 ? refuse(&failure) : 0;
}

int slurm_spank_task_exit(spank_t spank, int count, char **arguments)
{
    (void)count;
    (void)arguments;
    report_drain();
    container_step_end_task(spank);
    /* Not only in `exit`: before that Slurm removes the step's control groups, and the holder may be in one. */
    if (--tasks == 0)
        isolation_stop(&isolation);
    return 0;
}

int slurm_spank_exit(spank_t spank, int count, char **arguments)
{
    (void)spank;
    (void)count;
    (void)arguments;
    isolation_stop(&isolation);
    return 0;
}

static bool is_last_job(uid_t user, void *job_id)
{
    return !other_jobs_here(user, *(const uint32_t *)job_id);
}

int slurm_spank_job_epilog(spank_t spank, int count, char **arguments)
{
    struct failure failure = {FAILURE_NONE, ""};
    uint32_t job_id;
    uid_t user;

    (void)count;
    (void)arguments;
    if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS) {
        slurm_error("jail: ask Slurm for the job that has ended");
        return 0;
    }
    found_image_forget(job_id);
    if (user_cleanup_run(user, is_last_job, &job_id, &failure) < 0)
        slurm_error("jail: %s", failure.text);
    return 0; /* anything else drains the node, for what a user has left */
}
