#include "view_usage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mountinfo.h"
#include "numeric_entries.h"

#define ENOUGH 1

struct found {
    struct view_usage *views;
    int count;
};

static int see_view(const struct mountinfo_line *line, void *context)
{
    const size_t prefix = strlen(VIEWS "/");
    struct found *found = context;
    struct view_usage *view = &found->views[found->count];

    if (strncmp(line->point, VIEWS "/", prefix) != 0 || strlen(line->point) != prefix + TREE_NAME_SIZE - 1 ||
        strchr(line->point + prefix, '/'))
        return 0;
    if (found->count == VIEW_USAGE_MAX) {
        errno = E2BIG;
        return -1;
    }
    memcpy(view->tree, line->point + prefix, TREE_NAME_SIZE);
    view->mount = line->id;
    view->used = false;
    found->count++;
    return 0;
}

static int see_root(const struct mountinfo_line *line, void *context)
{
    struct found *found = context;

    if (strcmp(line->point, "/") != 0)
        return 0;
    for (int i = 0; i < found->count; i++)
        found->views[i].used |= found->views[i].mount == line->id;
    return ENOUGH;
}

/*
 * A process's mountinfo names mounts from the process's own root on, so the mount at "/" is its root. It can be read
 * without CAP_SYS_PTRACE, which /proc/<pid>/root takes, and for a session that runs no program (sftp, forwarding) too.
 */
static int see_process(int process, int reading, void *context)
{
    char path[sizeof("/proc/4294967295/mountinfo")];

    (void)reading;
    snprintf(path, sizeof(path), "/proc/%d/mountinfo", process);
    /* ENOENT, ESRCH, EINVAL: it has ended meanwhile */
    return mountinfo_each(path, see_root, context) < 0 && errno != ENOENT && errno != ESRCH && errno != EINVAL ? -1 : 0;
}

int view_usage_find(struct view_usage views[], struct failure *failure)
{
    struct found found = {.views = views, .count = 0};

    if (mountinfo_each("/proc/self/mountinfo", see_view, &found) < 0)
        return fail(failure, "read", "/proc/self/mountinfo");
    if (numeric_entries_each("/proc", see_process, &found) < 0)
        return fail(failure, "read in /proc", "what processes have mounted");
    return found.count;
}
