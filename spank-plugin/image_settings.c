#include "image_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (256 * 1024)

/* Open a regular file that is not too large. Returns a descriptor, or -1. */
static int open_file(const char *path, struct failure *failure)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (file < 0)
        return fail_job(failure, "open", path);
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= MAX_BYTES)
        return file;
    close(file);
    return fail_with(failure, FAILURE_JOB, "%.200s is not a file of at most %d bytes", path, MAX_BYTES);
}

/* Return what a file holds, with a zero byte behind it, or NULL. */
static char *read_file(const char *folder, const char *name, size_t *size, struct failure *failure)
{
    char path[PATH_MAX + 16];
    char *content;
    ssize_t count = -1;
    int file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if ((file = open_file(path, failure)) < 0)
        return NULL;
    if ((content = calloc(1, MAX_BYTES + 1)) && (count = read(file, content, MAX_BYTES)) < 0) {
        free(content);
        content = NULL;
    }
    if (!content)
        fail_job(failure, "read", path);
    close(file);
    *size = (size_t)count;
    return content;
}

int image_settings_read(struct image_settings *settings, const char *folder, bool entrypoint, struct failure *failure)
{
    size_t size;
    char *workdir = read_file(folder, "workdir", &size, failure);

    if (!workdir)
        return -1;
    snprintf(settings->workdir, sizeof(settings->workdir), "%s", workdir[0] == '/' ? workdir : "/");
    free(workdir);
    settings->variables = read_file(folder, "environment", &settings->size, failure);
    if (!settings->variables || !entrypoint)
        return settings->variables ? 0 : -1;
    if ((settings->entrypoint = read_file(folder, "entrypoint", &settings->entrypoint_size, failure)))
        return 0;
    return errno != ENOENT ? -1
                           : fail_with(failure, FAILURE_JOB,
                                       "%.300s was brought by an older version, without its entry point: remove it, and "
                                       "start the job again", folder);
}

int image_settings_give(const struct image_settings *settings, const struct container *container,
                        int (*set)(void *job, const char *name, const char *value), void *job, struct failure *failure)
{
    for (size_t at = 0; at < settings->size; at += strlen(settings->variables + at) + 1) {
        char *variable = settings->variables + at, *equals = strchr(variable, '=');
        char name[256];

        if (!equals || equals == variable || (size_t)(equals - variable) >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - variable), variable);
        if (!container_keeps(container, name) && set(job, name, equals + 1) < 0)
            return fail_with(failure, FAILURE_JOB, "the image's variable %.100s cannot be set", name);
    }
    return 0;
}
