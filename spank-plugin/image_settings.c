#include "image_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (256 * 1024)

/* Read a regular file with a zero byte behind it. Returns its size, or -1. */
static ssize_t read_file(const char *folder, const char *name, char **content, struct failure *failure)
{
    char path[PATH_MAX];
    struct stat status;
    ssize_t size = -1;
    int file;

    *content = NULL;
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return fail_with(failure, FAILURE_JOB, "the image's folder %.100s... has too long a path", folder);
    if ((file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) < 0)
        return fail_job(failure, "open", path);
    if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > MAX_BYTES)
        fail_with(failure, FAILURE_JOB, "%.200s is no file of at most %d bytes", path, MAX_BYTES);
    else if (!(*content = calloc(1, MAX_BYTES + 1)) || (size = read(file, *content, MAX_BYTES)) < 0)
        fail_job(failure, "read", path);
    close(file);
    return size;
}

int image_settings_read(struct image_settings *settings, const char *folder, struct failure *failure)
{
    char *workdir;
    ssize_t size;
    int result = -1;

    *settings = (struct image_settings){.variables = NULL};
    if ((size = read_file(folder, "workdir", &workdir, failure)) >= 0) {
        snprintf(settings->workdir, sizeof(settings->workdir), "%s", workdir[0] == '/' ? workdir : "/");
        if ((size = read_file(folder, "environment", &settings->variables, failure)) >= 0) {
            settings->size = (size_t)size;
            result = 0;
        }
    }
    free(workdir);
    return result;
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
