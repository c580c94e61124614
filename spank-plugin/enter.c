#include "enter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int enter_namespace(struct failure *failure)
{
    if (unshare(CLONE_NEWNS) < 0)
        return fail(failure, "make a namespace of", "mounts");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail(failure, "make private", "/");
    return 0;
}

/* A directory that lies outside would be a way out (fchdir, openat), whatever the root is. */
static int close_directories_at_exec(struct failure *failure)
{
    DIR *open_files = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat status;

    if (!open_files)
        return fail(failure, "read", "/proc/self/fd");
    while ((entry = readdir(open_files))) {
        int descriptor = atoi(entry->d_name);

        if (entry->d_name[0] == '.' || fstat(descriptor, &status) < 0 || !S_ISDIR(status.st_mode))
            continue;
        if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0) {
            closedir(open_files);
            return fail(failure, "close", "a directory outside of the jail");
        }
    }
    closedir(open_files);
    return 0;
}

int enter_root(int root, struct failure *failure)
{
    if (close_directories_at_exec(failure) < 0)
        return -1;
    if (fchdir(root) < 0)
        return fail(failure, "go to", "the view's root");
    /* The seccomp profile of container runtimes refuses pivot_root, with SYS_ADMIN too, and lets these pass. */
    if (mount(".", "/", NULL, MS_MOVE, NULL) < 0)
        return fail(failure, "move the view to", "/");
    if (chroot(".") < 0)
        return fail(failure, "chroot to", "the view");
    return chdir("/") < 0 ? fail(failure, "chdir to", "/") : 0;
}
