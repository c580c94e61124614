#include "in_use.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mountinfo.h"

#define ENOUGH 1

struct found {
    struct view_use *views;
    int count;
};

static int see_view(const struct mountinfo_line *line, void *context)
{
    const size_t prefix = strlen(VIEWS "/");
    struct found *found = context;
    struct view_use *view = &found->views[found->count];

    if (strncmp(line->point, VIEWS "/", prefix) != 0 || strlen(line->point) != prefix + TREE_NAME_SIZE - 1 ||
        strchr(line->point + prefix, '/'))
        return 0;
    if (found->count == IN_USE_MAX_VIEWS) {
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
static int see_processes(struct found *found, struct failure *failure)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;

    if (!processes)
        return fail(failure, "read", "/proc");
    while ((entry = readdir(processes))) {
        char path[sizeof("/proc//mountinfo") + sizeof(entry->d_name)];

        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "/proc/%s/mountinfo", entry->d_name);
        /* ENOENT, ESRCH, EINVAL: it has ended meanwhile */
        if (mountinfo_each(path, see_root, found) < 0 && errno != ENOENT && errno != ESRCH && errno != EINVAL) {
            fail(failure, "read", path);
            closedir(processes);
            return -1;
        }
    }
    closedir(processes);
    return 0;
}

int in_use_find(struct view_use views[], struct failure *failure)
{
    struct found found = {.views = views, .count = 0};

    if (mountinfo_each("/proc/self/mountinfo", see_view, &found) < 0)
        return fail(failure, "read", "/proc/self/mountinfo");
    return see_processes(&found, failure) < 0 ? -1 : found.count;
}
