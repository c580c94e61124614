#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../start_deadline.h"
#include "harness.h"
#include "world.h"

static int open_what_nobody_reads(void *unused)
{
    struct failure failure;

    (void)unused;
    CHECK(start_deadline_set(1, &failure) == 0);
    return open("/run/pipe", O_WRONLY);
}

TEST(a_process_that_hangs_in_an_open_is_killed)
{
    world_make();
    CHECK(mkfifo("/run/pipe", 0600) == 0);
    CHECK(test_in_child(open_what_nobody_reads, NULL) == 128 + SIGKILL);
}

static int lift_and_wait(void *unused)
{
    const struct timespec longer = {.tv_sec = 1, .tv_nsec = 200 * 1000 * 1000};
    struct failure failure;

    (void)unused;
    CHECK(start_deadline_set(1, &failure) == 0);
    start_deadline_lift();
    start_deadline_lift();
    return nanosleep(&longer, NULL);
}

TEST(a_bound_that_is_lifted_kills_nobody)
{
    CHECK(test_in_child(lift_and_wait, NULL) == 0);
}
