#include "view_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library_cache.h"
#include "mounts.h"
#include "resolve_in_root.h"
#include "view_attach.h"

#define PLACE "/usr/local/nvidia"
#define CACHE "/etc/ld.so.cache"
#define MERGED "ld.so.cache" /* in /run */
#define READ_ONLY (HARMLESS | MOUNT_ATTR_RDONLY)

/* That of a large system has 300 KiB. /run of a view has room for twice this. */
#define MAX_CACHE_BYTES (2 * 1024 * 1024)

static int read_all(int file, struct library_cache *cache)
{
    while (true) {
        ssize_t count = read(file, cache->bytes + cache->size, MAX_CACHE_BYTES - cache->size);

        if (count <= 0)
            return (int)count;
        cache->size += (size_t)count;
    }
}

/* Read what the O_PATH descriptor `found` is. What is no file, or too large, is as if it were empty. */
static int read_cache(int found, struct library_cache *cache)
{
    char path[32];
    struct stat status;
    int file, result;

    *cache = (struct library_cache){NULL, 0};
    if (fstat(found, &status) < 0)
        return -1;
    if (!S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > MAX_CACHE_BYTES)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
    if ((file = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return -1;
    result = (cache->bytes = malloc(MAX_CACHE_BYTES)) ? read_all(file, cache) : -1;
    close(file);
    return result;
}

static int write_all(int file, const struct library_cache *cache)
{
    for (size_t written = 0; written < cache->size;) {
        ssize_t count = write(file, cache->bytes + written, cache->size - written);

        if (count < 0)
            return -1;
        written += (size_t)count;
    }
    return 0;
}

/* Write the cache into /run of the view, and mount it on `place`. */
static int show(int root, int place, const struct library_cache *cache, struct failure *failure)
{
    int run = open_in_root(root, "/run"), file = -1, mount = -1, result = 0;

    if (run < 0 || (file = openat(run, MERGED, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) < 0 ||
        write_all(file, cache) < 0 || (mount = mounts_clone(run, MERGED, false, READ_ONLY, CLOSED)) < 0)
        result = fail(failure, "write", "/run/" MERGED);
    else if (mounts_attach(mount, place) < 0)
        result = fail(failure, "mount in the tree at", CACHE);
    if (mount >= 0)
        close(mount);
    if (file >= 0)
        close(file);
    if (run >= 0)
        close(run);
    return result;
}

static int merge_and_show(int root, int place, const struct library_cache *driver, struct failure *failure)
{
    struct library_cache jail, merged = {NULL, 0};
    int result = read_cache(place, &jail);

    if (result < 0)
        result = fail_volume(failure, "read in the tree", CACHE);
    else if (jail.bytes && library_cache_merge(&jail, driver, &merged) < 0)
        result = fail(failure, "merge", CACHE);
    else if (merged.bytes)
        result = show(root, place, &merged, failure);
    free(jail.bytes);
    free(merged.bytes);
    return result;
}

static int add_to_cache(int root, struct failure *failure)
{
    struct library_cache driver = {NULL, 0};
    int own = -1, result = 0;
    int place = open_in_root(root, CACHE);

    if (place < 0 && errno == ENOENT)
        return 0;
    if (place < 0)
        return fail_volume(failure, "open in the tree", CACHE);
    if ((own = open(JAIL_DRIVER CACHE, O_PATH | O_CLOEXEC)) < 0 || read_cache(own, &driver) < 0)
        result = fail(failure, "read", JAIL_DRIVER CACHE);
    else if (driver.bytes)
        result = merge_and_show(root, place, &driver, failure);
    free(driver.bytes);
    if (own >= 0)
        close(own);
    close(place);
    return result;
}

int view_driver_attach(int root, struct failure *failure)
{
    int mount = mounts_clone(AT_FDCWD, JAIL_DRIVER PLACE, true, READ_ONLY, CLOSED);

    if (mount < 0 && errno == ENOENT)
        return 0;
    if (view_attach(root, mount, PLACE, failure) < 0)
        return -1;
    return add_to_cache(root, failure);
}
