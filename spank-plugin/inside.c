#include "inside.h"

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

int inside_open(int root, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Put where a dangling link leads, followed by `rest`, into `path` (PATH_MAX): `parent` is where the link lies. */
static int follow(int directory, const char *name, const char *parent, const char *rest, char path[PATH_MAX])
{
    char target[PATH_MAX], joined[PATH_MAX];
    ssize_t length = readlinkat(directory, name, target, sizeof(target) - 1);
    int written;

    if (length < 0)
        return -1;
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

/*
 * Make the first part of `path` that is missing. Where that part is a link to nothing, `path` becomes where it leads.
 */
static int make_first_missing(int root, char path[PATH_MAX], bool is_directory)
{
    char *end = path;
    int directory = inside_open(root, "/");

    while (directory >= 0) {
        char *start = end + strspn(end, "/");
        char saved, name[NAME_MAX + 1];
        int next, result = 0;
        size_t length = strcspn(start, "/");

        end = start + length;
        if (length == 0 || length > NAME_MAX) {
            close(directory);
            errno = length == 0 ? EEXIST : ENAMETOOLONG;
            return -1;
        }
        memcpy(name, start, length);
        name[length] = '\0';
        saved = *end;
        *end = '\0';
        next = inside_open(root, path);
        *end = saved;
        if (next < 0 && errno == ENOENT) {
            bool last = end[strspn(end, "/")] == '\0';

            result = make_entry(directory, name, is_directory || !last);
            if (result < 0 && errno == EEXIST) {
                char rest[PATH_MAX], parent[PATH_MAX];

                strcpy(rest, end);
                *start = '\0';
                strcpy(parent, path);
                result = follow(directory, name, parent, rest, path);
                if (result < 0 && errno == EINVAL)
                    result = 0; /* not a link: another task has just made it */
            }
            close(directory);
            return result;
        }
        close(directory);
        directory = next;
    }
    return -1;
}

int inside_make(int root, const char *path, bool directory)
{
    char wanted[PATH_MAX];
    int found;

    if (strlen(path) >= sizeof(wanted)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(wanted, path);
    for (int i = 0; i < MAX_LINKS + PATH_MAX / 2; i++) {
        found = inside_open(root, wanted);
        if (found >= 0 || errno != ENOENT)
            return found;
        if (make_first_missing(root, wanted, directory) < 0)
            return -1;
    }
    errno = ELOOP;
    return -1;
}
