#include "node_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int give_line(char *line, node_environment_set set, void *job, struct failure *failure)
{
    char *equals = strchr(line, '=');

    line[strcspn(line, "\n")] = '\0';
    if (!equals || equals == line)
        return fail_with(failure, FAILURE_JOB, "environment of the node: \"%.100s\" is not NAME=VALUE", line);
    *equals = '\0';
    if (set(job, line, equals + 1) < 0)
        return fail_with(failure, FAILURE_JOB, "environment of the node: %.100s cannot be set", line);
    return 0;
}

int node_environment_give(const char *path, node_environment_set set, void *job, struct failure *failure)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int result = 0;

    if (!file)
        return errno == ENOENT ? 0 : fail_job(failure, "open", path);
    while (result == 0 && getline(&line, &size, file) > 0)
        result = give_line(line, set, job, failure);
    free(line);
    fclose(file);
    return result;
}
