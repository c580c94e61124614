/*
 * Calls of slurmd and slurmstepd on files that a user names (--output, --input, --chdir, sbcast), by LD_PRELOAD. They make
 * them with the user's rights, and neither hang in such a file, nor open a device, nor lead root astray.
 *
 * They wait in open(2), or later in write(2), under locks that the end of every job on the node takes. A named pipe
 * without a reader, or a terminal's other end, would keep the node in COMPLETING for good.
 *
 * No link is followed on this root in a volume that users can write to (close_volumes.sh): a link is there to lead root
 * to another file than it means. So the links that users have in their paths are resolved here, for calls as the user
 * alone. What has become a link since is refused by the kernel.
 *
 * As root they open what they like, but for links.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define MAX_LINKS 40 /* the kernel's bound (path_resolution(7)) */

static bool is_harmless(int file)
{
    struct stat status;

    if (fstat(file, &status) < 0)
        return false;
    return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ||
           (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)); /* /dev/null */
}

/* Join a directory without links and a name; -1 with errno where it is too long. */
static int join(char joined[PATH_MAX], const char *directory, const char *name)
{
    int length = snprintf(joined, PATH_MAX, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);

    if (length < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* One step towards a path whose last name need not exist. Returns 1 when `path` has no link, 0 when to go on, -1. */
static int resolve_last(char path[PATH_MAX])
{
    char directory[PATH_MAX], target[PATH_MAX];
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    ssize_t length;

    if (slash)
        *slash = '\0';
    if (!realpath(!slash ? "." : slash == path ? "/" : path, directory) || join(target, directory, name) < 0)
        return -1;
    memcpy(path, target, sizeof(target));
    if ((length = readlink(path, target, sizeof(target) - 1)) < 0)
        return errno == EINVAL || errno == ENOENT ? 1 : -1;
    target[length] = '\0';
    if (target[0] != '/')
        return join(path, directory, target);
    memcpy(path, target, sizeof(target));
    return 0;
}

/* The path without links, read as the user; false with errno where there is none. */
static bool resolve(const char *path, char resolved[PATH_MAX])
{
    char next[PATH_MAX];
    int result = 0;

    if (realpath(path, resolved))
        return true;
    if (errno != ENOENT || strlen(path) >= sizeof(next))
        return false;
    strcpy(next, path);
    for (int i = 0; i < MAX_LINKS && result == 0; i++)
        result = resolve_last(next);
    if (result == 0)
        errno = ELOOP;
    if (result != 1)
        return false;
    strcpy(resolved, next);
    return true;
}

/* Whether a call has met a link as the user; then `resolved` is the path without. */
static bool met_link(int result, const char *path, char resolved[PATH_MAX])
{
    return result < 0 && errno == ELOOP && geteuid() != 0 && resolve(path, resolved);
}

static int open_as_user(const char *path, int flags, mode_t mode)
{
    const int asked = flags | O_NONBLOCK | O_NOCTTY;
    char resolved[PATH_MAX];
    int file = openat(AT_FDCWD, path, asked, mode);

    if (!(flags & O_NOFOLLOW) && met_link(file, path, resolved))
        file = openat(AT_FDCWD, resolved, asked, mode);
    if (file < 0)
        return -1;
    if (!is_harmless(file)) {
        close(file);
        errno = EACCES;
        return -1;
    }
    if (!(flags & O_NONBLOCK) && fcntl(file, F_SETFL, flags & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC)) < 0) {
        close(file);
        return -1;
    }
    return file;
}

EXPORTED int open(const char *path, int flags, ...)
{
    mode_t mode = 0;

    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list arguments;

        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return geteuid() == 0 ? openat(AT_FDCWD, path, flags, mode) : open_as_user(path, flags, mode);
}

EXPORTED int open64(const char *path, int flags, ...) __attribute__((alias("open")));

EXPORTED int chdir(const char *path)
{
    char resolved[PATH_MAX];
    int result = (int)syscall(SYS_chdir, path);

    return met_link(result, path, resolved) ? (int)syscall(SYS_chdir, resolved) : result;
}

EXPORTED int mkdir(const char *path, mode_t mode)
{
    char resolved[PATH_MAX];
    int result = mkdirat(AT_FDCWD, path, mode);

    return met_link(result, path, resolved) ? mkdirat(AT_FDCWD, resolved, mode) : result;
}
