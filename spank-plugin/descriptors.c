#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mountinfo.h"
#include "numeric_entries.h"

#ifndef PIPEFS_MAGIC
#define PIPEFS_MAGIC 0x50495045
#endif
#define ROOT_OF_PROC 1 /* PROC_ROOT_INO, include/linux/proc_fs.h */

static const char *const STANDARD[] = {"standard input", "standard output", "standard error"};

struct search {
    struct shared_mounts found;
    const struct jail_config *config;
};

static bool is_bound(const struct jail_config *config, const char *point)
{
    for (size_t i = 0; i < config->bind_count; i++) {
        const char *bind = config->binds[i].path;
        size_t length = strlen(bind);

        if (strncmp(point, bind, length) == 0 && (point[length] == '\0' || point[length] == '/'))
            return true;
    }
    return false;
}

static int see_mount(const struct mountinfo_line *line, void *context)
{
    struct search *search = context;
    unsigned int *numbers;

    if (!is_bound(search->config, line->point))
        return 0;
    if (!(numbers = realloc(search->found.numbers, (search->found.count + 1) * sizeof(*numbers))))
        return -1;
    search->found.numbers = numbers;
    numbers[search->found.count++] = line->id;
    return 0;
}

int descriptors_note(struct shared_mounts *shared, const struct jail_config *config, struct failure *failure)
{
    struct search search = {.found = {.numbers = shared->numbers}, .config = config};
    int result = mountinfo_each("/proc/self/mountinfo", see_mount, &search);

    *shared = search.found;
    return result < 0 ? fail(failure, "read", "/proc/self/mountinfo") : 0;
}

static int replace_directory(int descriptor, int reading, void *context)
{
    const int *root = context;
    struct stat status;

    if (descriptor == reading || descriptor == *root)
        return 0;
    if (fstat(descriptor, &status) < 0)
        return -1;
    if (!S_ISDIR(status.st_mode) || dup3(*root, descriptor, O_CLOEXEC) >= 0)
        return 0;
    /* EBADF: its number is above the limit of open files that the user has chosen (srun --propagate) */
    return errno == EBADF ? close(descriptor) : -1;
}

static bool is_on(int descriptor, long magic)
{
    struct statfs system;

    return fstatfs(descriptor, &system) == 0 && system.f_type == magic;
}

/*
 * Open the directory with the own descriptors. The root may be an image's, whose /proc leads to a folder with other
 * numbers: only from the root of the kernel's /proc does "self" lead to this process. Returns a descriptor, or -1.
 */
static int open_own(struct failure *failure)
{
    struct stat status;
    /* Not open(), which slurmstepd has from open_as_user.c. */
    int proc = openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC), own;

    if (proc < 0)
        return fail(failure, "open", "/proc");
    if (!is_on(proc, PROC_SUPER_MAGIC) || fstat(proc, &status) < 0 || status.st_ino != ROOT_OF_PROC) {
        close(proc);
        return fail_with(failure, FAILURE_NODE, "/proc is not the kernel's: make it a folder in the image");
    }
    if ((own = openat(proc, "self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        fail(failure, "open", "/proc/self/fd");
    close(proc);
    return own;
}

int descriptors_replace_directories(struct failure *failure)
{
    int own = open_own(failure), root, result;

    if (own < 0)
        return -1;
    if ((root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
        close(own);
        return fail(failure, "open", "the view's root");
    }
    result = numeric_entries_read(own, replace_directory, &root);
    if (result < 0)
        fail(failure, "replace in /proc/self/fd", "a directory outside of the jail");
    close(root);
    return result;
}

static bool is_shared(const struct shared_mounts *shared, int descriptor)
{
    struct statx status;

    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) < 0 || !(status.stx_mask & STATX_MNT_ID))
        return false;
    for (size_t i = 0; i < shared->count; i++)
        if (shared->numbers[i] == status.stx_mnt_id)
            return true;
    return false;
}

/* The reason to refuse a descriptor that a program is to inherit; NULL: there is none. */
static const char *problem(const struct shared_mounts *shared, int descriptor)
{
    struct stat status;

    if (fstat(descriptor, &status) < 0)
        return errno == EBADF ? NULL : "a file that cannot be looked at";
    switch (status.st_mode & S_IFMT) {
    case S_IFREG:
        return is_shared(shared, descriptor) ? NULL : "a file outside of the jail";
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return is_on(descriptor, PIPEFS_MAGIC) ? NULL : "a named pipe";
    case S_IFCHR:
        return status.st_rdev == makedev(1, 3) || is_on(descriptor, DEVPTS_SUPER_MAGIC) ? NULL : "a device";
    case S_IFBLK:
        return "a device";
    default:
        return NULL; /* sockets, which no path opens, and what has no kind: events and the like */
    }
}

static int close_foreign(int descriptor, int reading, void *context)
{
    int flags = fcntl(descriptor, F_GETFD);

    if (descriptor > STDERR_FILENO && descriptor != reading && flags >= 0 && !(flags & FD_CLOEXEC) &&
        problem(context, descriptor))
        return close(descriptor);
    return 0;
}

/* The words of a refusal go to standard error: not into a file that was refused. */
static void replace_standard_error(bool output_serves)
{
    int null;

    if (output_serves) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
    } else if ((null = open("/dev/null", O_WRONLY | O_CLOEXEC)) >= 0) {
        dup2(null, STDERR_FILENO);
        close(null);
    } else {
        close(STDERR_FILENO);
    }
}

int descriptors_check(struct shared_mounts *shared, struct failure *failure)
{
    const char *found[3];
    int own;

    for (int i = 0; i < 3; i++)
        found[i] = problem(shared, i);
    if (found[STDERR_FILENO])
        replace_standard_error(!found[STDOUT_FILENO]);
    for (int i = 0; i < 3; i++)
        if (found[i])
            return fail_with(failure, FAILURE_JOB, "%s is %s. Give a regular file of a folder that the nodes share",
                             STANDARD[i], found[i]);
    if ((own = open_own(failure)) < 0) {
        failure->scope = FAILURE_JOB;
        return -1;
    }
    if (numeric_entries_read(own, close_foreign, shared) < 0)
        return fail_job(failure, "look at the open files in", "/proc/self/fd");
    return 0;
}
