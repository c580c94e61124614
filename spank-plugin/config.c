#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFUSED(...) fail_with(failure, FAILURE_NODE, "configuration: " __VA_ARGS__)

/* Places that the view fills itself. A bind at one of them or above it would hide what a job needs. */
static const char *const OWN_PLACES[] = {
    "/proc",     "/sys",           "/dev", "/run", "/run/munge", "/opt/slurm", "/var/lib/extrausers",
    "/etc/hosts", "/etc/resolv.conf",
};

/* Those of them that a bind must not be inside of either. */
static const char *const CLOSED_PLACES[] = {"/proc", "/sys", "/run/munge", "/opt/slurm", "/var/lib/extrausers"};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* True if `path` is `place` or lies in it. */
static bool is_within(const char *path, const char *place)
{
    size_t length = strlen(place);

    return strncmp(path, place, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* True if `path` is absolute, not "/", and in its shortest form. */
static bool is_plain_path(const char *path)
{
    const char *part = path;

    if (path[0] != '/' || path[1] == '\0')
        return false;
    for (const char *byte = path; *byte; byte++)
        if ((unsigned char)*byte <= ' ' || *byte == 0x7f || *byte == ':')
            return false;
    while (*part == '/') {
        size_t length = strcspn(++part, "/");

        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
    }
    return true;
}

static int take_path(char target[JAIL_PATH_SIZE], const char *name, const char *value, struct failure *failure)
{
    if (strlen(value) >= JAIL_PATH_SIZE)
        return REFUSED("%s=%.40s... is longer than %d bytes", name, value, JAIL_PATH_SIZE - 1);
    if (!is_plain_path(value))
        return REFUSED("%s=%.200s is no plain absolute path (no \"//\", \".\", \"..\", \":\", blanks or final \"/\")",
                       name, value);
    strcpy(target, value);
    return 0;
}

int config_add_bind(struct jail_config *config, const char *value, struct failure *failure)
{
    struct jail_bind *bind = &config->binds[config->bind_count];
    size_t length = strlen(value);
    char path[JAIL_PATH_SIZE];

    if (config->bind_count == JAIL_MAX_BINDS)
        return REFUSED("more than %d binds", JAIL_MAX_BINDS);
    if (length >= sizeof(path))
        return REFUSED("bind=%.40s... is longer than %zu bytes", value, sizeof(path) - 1);
    bind->read_only = length > 3 && strcmp(value + length - 3, ":ro") == 0;
    memcpy(path, value, length + 1);
    if (bind->read_only)
        path[length - 3] = '\0';
    if (take_path(bind->path, "bind", path, failure) < 0)
        return -1;
    config->bind_count++;
    return 0;
}

static int take_isolation(struct jail_config *config, const char *value, struct failure *failure)
{
    while (true) {
        size_t length = strcspn(value, ",");

        if (length == 3 && strncmp(value, "pid", 3) == 0)
            config->isolate_pid = true;
        else if (length == 3 && strncmp(value, "ipc", 3) == 0)
            config->isolate_ipc = true;
        else
            return REFUSED("isolation=...%.40s: known are pid and ipc, with a comma between them", value);
        if (value[length] == '\0')
            return 0;
        value += length + 1;
    }
}

static int take_containers(struct jail_config *config, const char *value, struct failure *failure)
{
    size_t digits = strspn(value, "0123456789");

    if (digits == 0 || digits > 7 || value[digits] != '\0' || (config->containers_mib = (unsigned int)atoi(value)) == 0)
        return REFUSED("containers=%.40s is no number of MiB from 1 to 9999999", value);
    return 0;
}

static int take(struct jail_config *config, const char *argument, struct failure *failure)
{
    if (strncmp(argument, "jail=", 5) == 0)
        return take_path(config->jail, "jail", argument + 5, failure);
    if (strncmp(argument, "spool=", 6) == 0)
        return take_path(config->spool, "spool", argument + 6, failure);
    if (strncmp(argument, "bind=", 5) == 0)
        return config_add_bind(config, argument + 5, failure);
    if (strncmp(argument, "binds=", 6) == 0)
        return take_path(config->binds_file, "binds", argument + 6, failure);
    if (strncmp(argument, "isolation=", 10) == 0)
        return take_isolation(config, argument + 10, failure);
    if (strncmp(argument, "containers=", 11) == 0)
        return take_containers(config, argument + 11, failure);
    if (strcmp(argument, "user_namespaces") == 0) {
        config->user_namespaces = true;
        return 0;
    }
    return REFUSED("unknown argument \"%.100s\": known are jail=, bind=, binds=, spool=, isolation=, containers=, "
                   "user_namespaces",
                   argument);
}

static int check_bind(const struct jail_config *config, const char *path, struct failure *failure)
{
    for (size_t i = 0; i < LENGTH(OWN_PLACES); i++)
        if (is_within(OWN_PLACES[i], path))
            return REFUSED("bind=%s would hide %s, which the jail has from elsewhere", path, OWN_PLACES[i]);
    for (size_t i = 0; i < LENGTH(CLOSED_PLACES); i++)
        if (is_within(path, CLOSED_PLACES[i]))
            return REFUSED("bind=%s lies in %s, which the jail has from elsewhere", path, CLOSED_PLACES[i]);
    if (is_within(config->spool, path) || is_within(path, config->spool))
        return REFUSED("bind=%s: of slurmd's spool %s a job sees its own part only", path, config->spool);
    if (is_within(config->jail, path) || is_within(path, config->jail))
        return REFUSED("bind=%s would show the root trees at %s to jobs", path, config->jail);
    return 0;
}

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct jail_bind *)left)->path, ((const struct jail_bind *)right)->path);
}

int config_check(struct jail_config *config, struct failure *failure)
{
    if (config->jail[0] == '\0')
        return REFUSED("jail=PATH is missing");
    if (is_within(config->jail, config->spool) || is_within(config->spool, config->jail))
        return REFUSED("jail=%s and spool=%s lie in each other", config->jail, config->spool);
    qsort(config->binds, config->bind_count, sizeof(config->binds[0]), by_path);
    for (size_t i = 0; i < config->bind_count; i++) {
        if (check_bind(config, config->binds[i].path, failure) < 0)
            return -1;
        if (i > 0 && strcmp(config->binds[i - 1].path, config->binds[i].path) == 0)
            return REFUSED("bind=%s is given twice", config->binds[i].path);
    }
    return 0;
}

int config_parse(struct jail_config *config, int count, char *const arguments[], struct failure *failure)
{
    size_t bytes = 0;

    memset(config, 0, sizeof(*config));
    strcpy(config->spool, "/var/spool/slurmd");
    for (int i = 0; i < count; i++) {
        bytes += strlen(arguments[i]) + 1;
        if (bytes > JAIL_MAX_ARGUMENTS_BYTES)
            return REFUSED("the arguments are longer than %d bytes, where Slurm may have cut the line of plugstack.conf",
                           JAIL_MAX_ARGUMENTS_BYTES);
        if (take(config, arguments[i], failure) < 0)
            return -1;
    }
    return config_check(config, failure);
}

/* Refuse a file that others than root may write: it decides what jobs see of the container. */
static int check_owner(FILE *file, const char *path, struct failure *failure)
{
    struct stat status;

    if (fstat(fileno(file), &status) < 0)
        return fail(failure, "look at", path);
    if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)))
        return fail_with(failure, FAILURE_NODE, "%s must be a file of root, and others must not be able to write to it",
                         path);
    return 0;
}

static int add_line(struct jail_config *config, char *line, struct failure *failure)
{
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "bind=", 5) == 0)
        return config_add_bind(config, line + 5, failure);
    if (strncmp(line, "containers=", 11) == 0)
        return take_containers(config, line + 11, failure);
    return fail_with(failure, FAILURE_NODE,
                     "configuration: %s: got the line \"%.100s\", known are bind=PATH[:ro] and containers=MIB",
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
