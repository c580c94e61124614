#include "view_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "mountinfo.h"
#include "mounts.h"
#include "resolve_in_root.h"

#define ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

struct masking {
    int root;
    struct failure *failure;
};

/* Repeat one mount below the container's /proc at the same place in the view. */
static int repeat(const struct mountinfo_line *line, void *context)
{
    const struct masking *masking = context;
    int mask, place, result = 0;

    if (strncmp(line->point, "/proc/", 6) != 0)
        return 0;
    if ((place = open_in_root(masking->root, line->point)) < 0) {
        if (errno == ENOENT)
            return 0; /* what is not there need not be masked */
        return fail(masking->failure, "open to mask", line->point);
    }
    mask = mounts_clone(AT_FDCWD, line->point, false, 0, 0);
    if (mask < 0 || mounts_attach(mask, place) < 0)
        result = fail(masking->failure, "mask", line->point);
    if (mask >= 0)
        close(mask);
    close(place);
    return result;
}

int view_proc_attach(int root, int place, struct failure *failure)
{
    /* hidepid=2: the processes of others are invisible */
    static const char *const OPTIONS[] = {"hidepid", "2", NULL};
    struct masking masking = {.root = root, .failure = failure};
    int mount = mounts_new("proc", OPTIONS, ATTRIBUTES);
    int result = 0;

    failure->scope = FAILURE_NONE;
    if (mount < 0)
        return fail(failure, "mount a new", "/proc");
    if (mounts_attach(mount, place) < 0)
        result = fail(failure, "mount in the tree at", "/proc");
    close(mount);
    if (result == 0 && (result = mountinfo_each("/proc/self/mountinfo", repeat, &masking)) < 0 &&
        failure->scope == FAILURE_NONE)
        result = fail(failure, "read", "/proc/self/mountinfo");
    return result;
}
