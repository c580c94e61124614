#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include "../enter_view.h"
#include "../isolation.h"
#include "../tree.h"
#include "../view.h"
#include "harness.h"
#include "world.h"

static struct isolation isolation = ISOLATION_NONE;
static struct failure failure;

static void start(bool pid, bool ipc)
{
    if (isolation_start(&isolation, pid, ipc, &failure) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
}

/* Fork as slurmstepd does: with the user as effective user, and into the namespace. */
static pid_t fork_task(int (*task)(void))
{
    pid_t child;

    CHECK(seteuid(USER_ID) == 0);
    CHECK(isolation_fork(&isolation, true, &failure) == 0);
    CHECK(geteuid() == USER_ID);
    CHECK((child = fork()) >= 0);
    if (child == 0) {
        if (seteuid(0) < 0 || isolation_join(&isolation, &failure) < 0)
            _exit(99);
        _exit(task());
    }
    CHECK(seteuid(0) == 0);
    CHECK(isolation_fork(&isolation, false, &failure) == 0);
    return child;
}

static int number(void)
{
    return getpid() < 10 ? 0 : 1;
}

TEST(tasks_have_small_process_numbers_and_are_known_outside)
{
    start(true, false);
    for (int i = 0; i < 3; i++)
        CHECK(test_await(fork_task(number)) == 0);
    isolation_stop(&isolation);
}

static int wait_for_term(void)
{
    alarm(60);
    pause();
    return 0;
}

TEST(signals_and_exit_codes_are_as_without)
{
    pid_t task;

    start(true, true);
    task = fork_task(wait_for_term);
    CHECK(kill(task, SIGTERM) == 0);
    CHECK(test_await(task) == 128 + SIGTERM);
    isolation_stop(&isolation);
}

static int sees_both(void)
{
    static struct jail_config config;
    static const char *const ARGUMENTS[] = {"bind=/home"};
    struct view view = {.config = &config, .job = true};
    struct tree tree;
    int claim, root;

    world_configure(&config, 1, ARGUMENTS);
    config.isolate_ipc = true;
    CHECK(enter_namespace(&failure) == 0);
    CHECK((claim = claim_open(CLAIM, &failure)) >= 0);
    CHECK(tree_of_job(claim, 1, &tree, &failure) == 0);
    view.tree = view.place = tree.fd;
    if ((root = view_build(&view, &failure)) < 0 || enter_root(root, &failure) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
    CHECK(kill(2, 0) == 0); /* the task before */
    CHECK(access("/proc/1", F_OK) == 0 && access("/proc/2", F_OK) == 0 && access("/proc/200", F_OK) == -1);
    CHECK(access("/dev/mqueue", F_OK) == 0);
    world_become_user();
    CHECK(access("/proc/1", F_OK) == -1 && access("/proc/self/status", F_OK) == 0);
    return 0;
}

TEST(tasks_of_a_step_see_each_other_in_the_jail)
{
    pid_t first;

    world_make();
    start(true, true);
    first = fork_task(wait_for_term);
    CHECK(test_await(fork_task(sees_both)) == 0);
    isolation_stop(&isolation);
    CHECK(test_await(first) == 128 + SIGKILL);
}

static int make_shared_memory(void)
{
    return shmget(4711, 4096, IPC_CREAT | IPC_EXCL | 0600) < 0 ? 1 : 0;
}

static int find_shared_memory(void)
{
    return shmget(4711, 4096, 0) < 0 ? 1 : 0;
}

TEST(tasks_of_a_step_share_memory_and_others_do_not_see_it)
{
    start(false, true);
    CHECK(test_await(fork_task(make_shared_memory)) == 0);
    CHECK(test_await(fork_task(find_shared_memory)) == 0);
    CHECK(find_shared_memory() == 1 && errno == ENOENT);
    isolation_stop(&isolation);
    start(false, true);
    CHECK(test_await(fork_task(find_shared_memory)) == 1);
    isolation_stop(&isolation);
}

static int leave_behind(void)
{
    pid_t orphan = fork();

    if (orphan == 0) {
        setsid();
        pause();
    }
    return orphan < 0;
}

static int is_alone(void)
{
    for (int i = 0; i < 500; i++, usleep(10000))
        if (kill(3, 0) < 0 && errno == ESRCH)
            return 0;
    return 1;
}

static int end_orphan(void)
{
    return kill(3, SIGKILL) < 0 ? 2 : is_alone();
}

TEST(what_tasks_leave_behind_is_reaped)
{
    start(true, false);
    CHECK(test_await(fork_task(leave_behind)) == 0);
    CHECK(test_await(fork_task(end_orphan)) == 0);
    isolation_stop(&isolation);
}

/* Each holds a pipe's end as long as it lives. */
static int out[2];

TEST(the_end_of_the_step_ends_all_that_is_left)
{
    char byte;

    CHECK(pipe(out) == 0);
    start(true, false);
    CHECK(test_await(fork_task(leave_behind)) == 0);
    isolation_stop(&isolation);
    close(out[1]);
    CHECK(read(out[0], &byte, 1) == 0);
}

static int start_and_die(void *unused)
{
    (void)unused;
    start(true, false);
    fork_task(wait_for_term);
    return 0;
}

TEST(nothing_outlives_slurmstepd)
{
    char byte;

    CHECK(pipe(out) == 0);
    CHECK(test_in_child(start_and_die, NULL) == 0);
    close(out[1]);
    CHECK(read(out[0], &byte, 1) == 0);
}

TEST(the_holder_keeps_no_pipe_open)
{
    char byte;

    CHECK(pipe(out) == 0);
    start(true, true);
    close(out[1]);
    CHECK(read(out[0], &byte, 1) == 0);
    isolation_stop(&isolation);
}

static void *nothing(void *unused)
{
    return unused;
}

TEST(slurmstepd_can_start_threads_after_its_forks)
{
    pthread_t thread;

    start(true, true);
    CHECK(test_await(fork_task(number)) == 0);
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
    isolation_stop(&isolation);
}

TEST(without_isolation_nothing_happens)
{
    pid_t child;

    CHECK(isolation_fork(&isolation, true, &failure) == 0);
    CHECK(isolation_join(&isolation, &failure) == 0);
    CHECK((child = fork()) >= 0);
    if (child == 0)
        _exit(getpid() < 10);
    CHECK(test_await(child) == 0);
    isolation_stop(&isolation);
}

TEST(without_the_right_it_is_a_failure)
{
    world_become_user();
    CHECK(isolation_start(&isolation, true, true, &failure) == -1);
    CHECK(failure.scope == FAILURE_NODE);
    CHECK_SAYS(failure.text, "Operation not permitted");
}
