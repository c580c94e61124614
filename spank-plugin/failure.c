#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *reason(int error)
{
    /* The one reason that reads like a riddle: a kernel or a seccomp profile that is too old. */
    return error == ENOSYS ? "Function not implemented (Linux 5.14 or newer and a seccomp profile that knows it)"
                           : strerror(error);
}

static enum failure_scope scope_of(int error)
{
    switch (error) {
    case EAGAIN:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
        return FAILURE_JOB;
    /* errno(3) on "network", "connection", "stale file handle"; EIO and EROFS: the disk behind it has failed */
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EIO:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOLINK:
    case ENOTCONN:
    case EREMOTEIO:
    case EROFS:
    case ESHUTDOWN:
    case ESTALE:
    case ETIMEDOUT:
        return FAILURE_VOLUME;
    default:
        return FAILURE_NODE;
    }
}

int fail(struct failure *failure, const char *step, const char *path)
{
    return fail_with(failure, scope_of(errno), "%s %s: %s", step, path, reason(errno));
}

int fail_volume(struct failure *failure, const char *step, const char *path)
{
    fail(failure, step, path);
    if (failure->scope == FAILURE_NODE)
        failure->scope = FAILURE_VOLUME;
    return -1;
}

int fail_job(struct failure *failure, const char *step, const char *path)
{
    return fail_with(failure, FAILURE_JOB, "%s %s: %s", step, path, reason(errno));
}

int fail_with(struct failure *failure, enum failure_scope scope, const char *format, ...)
{
    va_list arguments;

    failure->scope = scope;
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof(failure->text), format, arguments);
    va_end(arguments);
    return -1;
}
