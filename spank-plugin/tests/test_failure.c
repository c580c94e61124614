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
    CHECK(scope_of(ENOENT) == FAILURE_NODE && scope_of(EPERM) == FAILURE_NODE && scope_of(EINVAL) == FAILURE_NODE);
}

TEST(a_jobs_own_limits_do_not_drain_a_node)
{
    CHECK(scope_of(ENOMEM) == FAILURE_JOB && scope_of(EAGAIN) == FAILURE_JOB);
}

TEST(a_full_volume_does_not_drain_a_node)
{
    CHECK(scope_of(ENOSPC) == FAILURE_JOB && scope_of(EDQUOT) == FAILURE_JOB && scope_of(EFBIG) == FAILURE_JOB);
}

TEST(a_file_system_that_is_away_concerns_its_volume)
{
    static const int ERRORS[] = {ECONNREFUSED, EHOSTDOWN, EIO, ENOTCONN, EREMOTEIO, EROFS, ESHUTDOWN, ESTALE, ETIMEDOUT};

    for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
        CHECK(scope_of(ERRORS[i]) == FAILURE_VOLUME);
}

TEST(what_is_wrong_on_the_shared_volume_itself_never_concerns_the_node)
{
    static const struct {
        int error;
        enum failure_scope scope;
    } CASES[] = {{ENOENT, FAILURE_VOLUME}, {EACCES, FAILURE_VOLUME}, {ESTALE, FAILURE_VOLUME}, {ENOSPC, FAILURE_JOB}};

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        errno = CASES[i].error;
        CHECK(fail_volume(&failure, "open", "trees") == -1);
        CHECK(failure.scope == CASES[i].scope);
    }
}

TEST(a_kernel_that_is_too_old_is_told_so)
{
    CHECK(scope_of(ENOSYS) == FAILURE_NODE);
    CHECK_SAYS(failure.text, "Linux 5.14 or newer");
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
