#include <errno.h>
#include <string.h>

#include "../failure.h"
#include "harness.h"

static struct failure failure;

static enum failure_scope scope_of(int error)
{
    errno = error;
    CHECK(fail(&failure, "mount", "/data") == -1);
    return failure.scope;
}

TEST(a_failure_names_the_step_the_path_and_the_reason)
{
    errno = EACCES;
    CHECK(fail_job(&failure, "chdir to", "/data") == -1);
    CHECK(strcmp(failure.text, "chdir to /data: Permission denied") == 0);
    CHECK(failure.scope == FAILURE_JOB);
}

TEST(what_every_job_would_meet_concerns_the_node)
{
    CHECK(scope_of(ENOENT) == FAILURE_NODE && scope_of(EPERM) == FAILURE_NODE && scope_of(EIO) == FAILURE_NODE);
}

TEST(a_jobs_own_limits_do_not_drain_a_node)
{
    CHECK(scope_of(ENOMEM) == FAILURE_JOB && scope_of(EAGAIN) == FAILURE_JOB);
}

TEST(a_kernel_that_is_too_old_is_told_so)
{
    CHECK(scope_of(ENOSYS) == FAILURE_NODE);
    CHECK_SAYS(failure.text, "Linux 5.12 or newer");
}

TEST(a_long_path_is_cut)
{
    char path[4096];

    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    errno = ENOENT;
    CHECK(fail(&failure, "open", path) == -1);
    CHECK(strlen(failure.text) == sizeof(failure.text) - 1);
}
