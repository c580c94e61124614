#include "resolve_in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_LINKS 16
#define MAX_RACES 10000

int open_in_root(int root, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };

    /* EAGAIN: a mount or a rename anywhere on the machine, while a ".." was followed (openat2(2)) */
    for (int i = 0; i < MAX_RACES; i++) {
        int found = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

        if (found >= 0 || errno != EAGAIN)
            return found;
    }
    return -1;
}

/*
 * When `name` in `directory` is a link, put where it leads, followed by `rest`, into `path`. Its directory is `parent`.
 * When it is none, another task has just made what was missing, and `path` stays.
 */
static int follow(int directory, const char *name, const char *parent, const char *rest, char path[PATH_MAX])
{
    char target[PATH_MAX], joined[PATH_MAX];
    ssize_t length = readlinkat(directory, name, target, sizeof(target) - 1);
    int written;

    if (length < 0)
        return errno == EINVAL ? 0 : -1;
    target[length] = '\0';
    written = target[0] == '/' ? snprintf(joined, sizeof(joined), "%s%s", target, rest)
                               : snprintf(joined, sizeof(joined), "%s/%s%s", parent, target, rest);
    if (written < 0 || (size_t)written >= sizeof(joined)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, joined, (size_t)written + 1);
    return 0;
}

static int make_entry(int directory, const char *name, bool is_directory)
{
    int file;

    if (is_directory)
        return mkdirat(directory, name, 0755);
    file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return file < 0 ? -1 : close(file);
}

/* Make `name`, which is missing in `parent`; `rest` of `path` comes after it. */
static int make_missing(int root, const char *parent, const char *name, const char *rest, bool is_directory,
                        char path[PATH_MAX])
{
    int directory = open_in_root(root, parent);
    int result;

    if (directory < 0)
        return -1;
    result = make_entry(directory, name, is_directory);
    if (result < 0 && errno == EEXIST)
        result = follow(directory, name, parent, rest, path);
    close(directory);
    return result;
}

/*
 * Make the first part of `path` that is missing. Where that part is a link to nothing, `path` becomes where it leads.
 */
static int make_first_missing(int root, char path[PATH_MAX], bool is_directory)
{
    char prefix[PATH_MAX], parent[PATH_MAX], name[NAME_MAX + 1], rest[PATH_MAX];
    const char *end = path;

    while (true) {
        const char *start = end + strspn(end, "/");
        int found;

        end = start + strcspn(start, "/");
        if (start == end)
            return 0; /* another task has just made the last part */
        if (end - start > NAME_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(end - path), path);
        if ((found = open_in_root(root, prefix)) >= 0) {
            close(found);
            continue;
        }
        if (errno != ENOENT)
            return -1;
        snprintf(parent, sizeof(parent), "%.*s", (int)(start - path), path);
        snprintf(name, sizeof(name), "%.*s", (int)(end - start), start);
        snprintf(rest, sizeof(rest), "%s", end);
        return make_missing(root, parent, name, rest, is_directory || rest[strspn(rest, "/")] != '\0', path);
    }
}

int make_in_root(int root, const char *path, bool directory)
{
    char wanted[PATH_MAX];

    if (path[0] != '/' || strlen(path) >= sizeof(wanted)) {
        errno = path[0] == '/' ? ENAMETOOLONG : EINVAL;
        return -1;
    }
    strcpy(wanted, path);
    for (int i = 0; i < MAX_LINKS + PATH_MAX / 2; i++) {
        int found = open_in_root(root, wanted);

        if (found >= 0 || errno != ENOENT)
            return found;
        if (make_first_missing(root, wanted, directory) < 0)
            return -1;
    }
    errno = ELOOP;
    return -1;
}
