#include "session_views.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"
#include "view.h"
#include "view_usage.h"

#define ACTIVE VIEWS "/active"
#define NEXT VIEWS "/.active"

int session_views_prepare(struct failure *failure)
{
    if (mkdir(VIEWS, 0755) < 0 && errno != EEXIST)
        return fail(failure, "make", VIEWS);
    return chmod(VIEWS, 0755) < 0 ? fail(failure, "chmod 0755", VIEWS) : 0;
}

#define PATH_SIZE (sizeof(VIEWS "/") + TREE_NAME_SIZE)

static void view_path(char path[PATH_SIZE], const char name[TREE_NAME_SIZE])
{
    snprintf(path, PATH_SIZE, VIEWS "/%.*s", TREE_NAME_SIZE - 1, name);
}

/* The tree whose view new sessions get; "" when there is none. */
static void current(char name[TREE_NAME_SIZE])
{
    char target[TREE_NAME_SIZE + 1];
    ssize_t length = readlink(ACTIVE, target, sizeof(target));

    if (length != TREE_NAME_SIZE - 1)
        length = 0;
    memcpy(name, target, (size_t)length);
    name[length] = '\0';
}

/* The link may be of a container that was here before; its mounts are gone with it. */
static int has_view(const char *name, struct failure *failure)
{
    struct view_usage views[VIEW_USAGE_MAX];
    int count = view_usage_find(views, failure);

    for (int i = 0; i < count; i++)
        if (strcmp(views[i].tree, name) == 0)
            return 1;
    return count < 0 ? -1 : 0;
}

/* A view that could not be finished must not be found whole later. */
static int build(const struct view *view, const char *path, struct failure *failure)
{
    int root = view_build(view, failure);

    if (root >= 0)
        return close(root);
    umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
    return -1;
}

static int add_view(const struct jail_config *config, int claim, const char *name, struct failure *failure)
{
    struct view view = {.config = config, .job = false};
    struct tree tree;
    char path[PATH_SIZE];
    int result;

    view_path(path, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return fail(failure, "make", path);
    if (tree_open(claim, name, &tree, failure) < 0)
        return -1;
    view.tree = tree.fd;
    view.place = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    result = view.place < 0 ? fail(failure, "open", path) : build(&view, path, failure);
    if (view.place >= 0)
        close(view.place);
    close(tree.fd);
    return result;
}

static int point_to(const char *name, struct failure *failure)
{
    if (unlink(NEXT) < 0 && errno != ENOENT)
        return fail(failure, "remove", NEXT);
    if (symlink(name, NEXT) < 0)
        return fail(failure, "make", NEXT);
    return rename(NEXT, ACTIVE) < 0 ? fail(failure, "switch", ACTIVE) : 0;
}

int session_views_follow(const struct jail_config *config, struct failure *failure)
{
    static char followed[TREE_NAME_SIZE];
    char name[TREE_NAME_SIZE];
    int claim = claim_open(config->jail, failure);
    int result, there;

    if (claim < 0)
        return -1;
    result = tree_active(claim, name, failure);
    if (result == 0 && strcmp(name, followed) != 0) {
        if ((there = has_view(name, failure)) == 0)
            there = add_view(config, claim, name, failure);
        result = there < 0 || point_to(name, failure) < 0 ? -1 : 1;
        if (result == 1)
            memcpy(followed, name, sizeof(followed));
    }
    close(claim);
    return result;
}

int session_views_tidy(struct failure *failure)
{
    struct view_usage views[VIEW_USAGE_MAX];
    char name[TREE_NAME_SIZE], path[PATH_SIZE];
    int count = view_usage_find(views, failure);

    current(name);
    for (int i = 0; i < count; i++) {
        if (views[i].used || strcmp(views[i].tree, name) == 0)
            continue;
        view_path(path, views[i].tree);
        if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
            return fail(failure, "unmount", path);
        if (rmdir(path) < 0)
            return fail(failure, "remove", path);
    }
    return count < 0 ? -1 : 0;
}
