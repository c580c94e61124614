#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *reason(int error)
{
    /* The one reason that reads like a riddle: a kernel or a seccomp profile that is too old. */
    return error == ENOSYS ? "Function not implemented (Linux 5.12 or newer and a seccomp profile that knows it)"
                           : strerror(error);
}

int fail(struct failure *failure, const char *step, const char *path)
{
    enum failure_scope scope = errno == ENOMEM || errno == EAGAIN ? FAILURE_JOB : FAILURE_NODE;

    return fail_saying(failure, scope, "%s %s: %s", step, path, reason(errno));
}

int fail_job(struct failure *failure, const char *step, const char *path)
{
    return fail_saying(failure, FAILURE_JOB, "%s %s: %s", step, path, reason(errno));
}

int fail_saying(struct failure *failure, enum failure_scope scope, const char *format, ...)
{
    va_list arguments;

    failure->scope = scope;
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof(failure->text), format, arguments);
    va_end(arguments);
    return -1;
}
