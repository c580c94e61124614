/*
 * open(2) for slurmd and slurmstepd, by LD_PRELOAD: what they open as a user can neither hold them nor be a device.
 *
 * They open files that a user names (--output, --input, sbcast) with the user's rights, and wait in it, or later in
 * write(2), under locks that the end of every job on the node takes. A named pipe without a reader, or a terminal's
 * other end, would keep the node in COMPLETING for good. As root they open what they like, as before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static bool is_harmless(int file)
{
    struct stat status;

    if (fstat(file, &status) < 0)
        return false;
    return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ||
           (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)); /* /dev/null */
}

static int open_as_user(const char *path, int flags, mode_t mode)
{
    int file = openat(AT_FDCWD, path, flags | O_NONBLOCK | O_NOCTTY, mode);

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
