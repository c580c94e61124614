#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../start_signals.h"
#include "harness.h"

static void do_nothing(int signal)
{
    (void)signal;
}

static void handle(int signal)
{
    const struct sigaction action = {.sa_handler = do_nothing};

    CHECK(sigaction(signal, &action, NULL) == 0);
}

TEST(slurmstepd_passes_no_signal_on_before_the_task_accepts_it)
{
    const struct timespec later = {.tv_nsec = 200 * 1000 * 1000};
    pid_t task;

    handle(SIGTERM);
    CHECK(start_signals_prepare() == 0);
    CHECK((task = fork()) >= 0);
    if (task == 0) {
        nanosleep(&later, NULL);
        start_signals_accept();
        for (;;)
            pause();
    }
    start_signals_await();
    CHECK(kill(task, SIGTERM) == 0);
    CHECK(test_await(task) == 128 + SIGTERM);
}

static double seconds_of_await(void)
{
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);
    start_signals_await();
    clock_gettime(CLOCK_MONOTONIC, &after);
    return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

TEST(of_many_tasks_that_end_before_the_first_alone_holds_up_the_step)
{
    CHECK(start_signals_prepare() == 0);
    CHECK(seconds_of_await() > 1.5);
    CHECK(seconds_of_await() < 0.5);
}

TEST(other_signals_that_slurmstepd_handles_interrupt_no_call)
{
    struct sigaction action;

    handle(SIGUSR1);
    start_signals_accept();
    CHECK(sigaction(SIGUSR1, NULL, &action) == 0);
    CHECK(action.sa_handler == do_nothing && action.sa_flags & SA_RESTART);
}

TEST(signals_that_are_ignored_stay_ignored_for_the_program)
{
    struct sigaction action;

    CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    start_signals_accept();
    CHECK(sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
}

TEST(the_name_of_a_task_is_not_slurmstepds)
{
    char before[16], after[16];

    CHECK(prctl(PR_GET_NAME, before, 0, 0, 0) == 0);
    start_signals_accept();
    CHECK(prctl(PR_GET_NAME, after, 0, 0, 0) == 0 && strcmp(before, after) != 0);
}
