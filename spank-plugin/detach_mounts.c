#include "detach_mounts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "mountinfo.h"

struct search {
    FILE *points;
    unsigned int root;
    bool has_root;
};

static int see_root(const struct mountinfo_line *line, void *context)
{
    struct search *search = context;

    if (strcmp(line->point, "/") != 0)
        return 0;
    search->root = line->id;
    search->has_root = true;
    return 1;
}

static int see_mount(const struct mountinfo_line *line, void *context)
{
    const struct search *search = context;
    size_t size = strlen(line->point) + 1;

    if (line->parent != search->root || line->id == search->root)
        return 0;
    return fwrite(line->point, 1, size, search->points) == size ? 0 : -1;
}

int detach_mounts_note(struct detachable *found, struct failure *failure)
{
    struct search search = {.has_root = false};
    int result;

    *found = (struct detachable){NULL, 0};
    if (mountinfo_each("/proc/self/mountinfo", see_root, &search) < 0)
        return fail(failure, "read", "/proc/self/mountinfo");
    if (!search.has_root)
        return fail_with(failure, FAILURE_NODE, "find the mount that is the root in /proc/self/mountinfo");
    if (!(search.points = open_memstream(&found->points, &found->size)))
        return fail(failure, "find memory for", "what is mounted");
    result = mountinfo_each("/proc/self/mountinfo", see_mount, &search);
    if (result < 0)
        fail(failure, "read", "/proc/self/mountinfo");
    if (fclose(search.points) < 0 && result == 0)
        result = fail(failure, "find memory for", "what is mounted");
    return result;
}

int detach_mounts_all(const struct detachable *found, struct failure *failure)
{
    const char *point = found->points;

    for (; point < found->points + found->size; point += strlen(point) + 1) {
        /* again, for what lies below at the same place, until nothing is mounted there */
        while (umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            ;
        if (errno != EINVAL)
            return fail(failure, "detach", point);
    }
    return 0;
}

void detach_mounts_forget(struct detachable *found)
{
    free(found->points);
    *found = (struct detachable){NULL, 0};
}
