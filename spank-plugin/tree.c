#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREES "trees/"
#define DIRECTORY (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define MAX_TRIES 16

int claim_open(const char *path, struct failure *failure)
{
    int claim = open(path, DIRECTORY);

    return claim < 0 ? fail_volume(failure, "open the jail's volume", path) : claim;
}

/* Read a link to trees/<12 hexadecimal digits>. Returns -1 with errno; EBADMSG: it leads elsewhere. */
static int read_link(int claim, const char *link, char name[TREE_NAME_SIZE])
{
    const size_t expected = strlen(TREES) + TREE_NAME_SIZE - 1;
    char target[64];
    ssize_t length = readlinkat(claim, link, target, sizeof(target) - 1);

    if (length < 0)
        return -1;
    target[length] = '\0';
    if ((size_t)length != expected || strncmp(target, TREES, strlen(TREES)) != 0 ||
        strspn(target + strlen(TREES), "0123456789abcdef") != TREE_NAME_SIZE - 1) {
        errno = EBADMSG;
        return -1;
    }
    memcpy(name, target + strlen(TREES), TREE_NAME_SIZE);
    return 0;
}

int tree_active(int claim, char name[TREE_NAME_SIZE], struct failure *failure)
{
    if (read_link(claim, "active", name) < 0)
        return fail_volume(failure, "read the link in the jail's volume", "active");
    return 0;
}

int tree_open(int claim, const char *name, struct tree *tree, struct failure *failure)
{
    char path[sizeof(TREES) + TREE_NAME_SIZE];
    struct stat status;
    int trees = openat(claim, "trees", DIRECTORY | O_NOFOLLOW);

    if (trees < 0)
        return fail_volume(failure, "open in the jail's volume", "trees");
    memcpy(tree->name, name, TREE_NAME_SIZE);
    snprintf(path, sizeof(path), TREES "%s", name);
    tree->fd = openat(trees, name, DIRECTORY | O_NOFOLLOW);
    close(trees);
    if (tree->fd < 0)
        return fail_volume(failure, "open in the jail's volume", path);
    if (fstat(tree->fd, &status) == 0 && status.st_uid == 0 && !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return 0;
    close(tree->fd);
    tree->fd = -1;
    return fail_with(failure, FAILURE_VOLUME, "%s must be root's, and others must not be able to write to it", path);
}

static bool is_gone(int claim, const char *name)
{
    char path[sizeof(TREES) + TREE_NAME_SIZE];
    struct stat status;

    snprintf(path, sizeof(path), TREES "%s", name);
    return fstatat(claim, path, &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

int tree_of_job(int claim, uint32_t job_id, struct tree *tree, struct failure *failure)
{
    char record[32], name[TREE_NAME_SIZE], target[sizeof(TREES) + TREE_NAME_SIZE];

    snprintf(record, sizeof(record), "jobs/%u", job_id);
    /* Tasks on many nodes do this at once; each round ends with what one of them has recorded. */
    for (int i = 0; i < MAX_TRIES; i++) {
        if (read_link(claim, record, name) == 0) {
            if (!is_gone(claim, name))
                return tree_open(claim, name, tree, failure);
            if (unlinkat(claim, record, 0) < 0 && errno != ENOENT)
                return fail_volume(failure, "remove the old record", record);
        } else if (errno != ENOENT) {
            return fail_job(failure, "read the job's record", record);
        }
        if (tree_active(claim, name, failure) < 0)
            return -1;
        snprintf(target, sizeof(target), TREES "%s", name);
        if (symlinkat(target, claim, record) < 0 && errno != EEXIST)
            return fail_volume(failure, "record the job's tree", record);
    }
    return fail_with(failure, FAILURE_JOB, "record the job's tree %s: it changed %d times", record, MAX_TRIES);
}
