#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

/* Who may write the file decides what jobs see of the container. */
static int check_owner(FILE *file, const char *path, struct failure *failure)
{
    struct stat status;

    if (fstat(fileno(file), &status) < 0)
        return fail(failure, "look at", path);
    if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)))
        return fail_saying(failure, FAILURE_NODE, "%s must be a file of root, and others must not be able to write to it",
                           path);
    return 0;
}

static int add_line(struct jail_config *config, char *line, struct failure *failure)
{
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "bind=", 5) == 0)
        return config_add_bind(config, line + 5, failure);
    return fail_saying(failure, FAILURE_NODE, "configuration: %s: got the line \"%.100s\", known is bind=PATH[:ro]",
                       config->binds_file, line);
}

static int add_lines(struct jail_config *config, FILE *file, struct failure *failure)
{
    char *line = NULL;
    size_t size = 0;
    int result = check_owner(file, config->binds_file, failure);

    while (result == 0 && getline(&line, &size, file) >= 0)
        result = add_line(config, line, failure);
    if (result == 0 && ferror(file))
        result = fail(failure, "read", config->binds_file);
    free(line);
    return result;
}

int config_load(struct jail_config *config, int count, char *const arguments[], struct failure *failure)
{
    int descriptor, result;
    FILE *file;

    if (config_parse(config, count, arguments, failure) < 0)
        return -1;
    if (config->binds_file[0] == '\0')
        return 0;
    /* not blocking: it could be anything until it has been looked at */
    if ((descriptor = open(config->binds_file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) < 0)
        return fail(failure, "open", config->binds_file);
    if (!(file = fdopen(descriptor, "r"))) {
        fail(failure, "open", config->binds_file);
        close(descriptor);
        return -1;
    }
    result = add_lines(config, file, failure);
    fclose(file);
    return result < 0 ? -1 : config_check(config, failure);
}
