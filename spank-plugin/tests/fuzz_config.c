/*
 * Fuzzing of the configuration parser: lines are mutated at random (seeded, so that a find can be had again), and what
 * is accepted has to keep the promises of config.h. The sanitizers watch the rest.
 *
 *   fuzz_config SECONDS SEED
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../config.h"

#define LINE_SIZE 6000
#define MAX_ARGUMENTS 512

static const char *const SEEDS[] = {
    "jail=/jail bind=/home bind=/tmp bind=/data:ro bind=/dev/shm isolation=pid,ipc user_namespaces",
    "jail=/jail spool=/var/spool/slurmd bind=/mnt/local",
    "bind=/a bind=/a/b bind=/a/b/c:ro jail=/j",
};
static const char *const PIECES[] = {
    "jail=", "bind=", "spool=", "isolation=", "user_namespaces", ":ro", "/", "..", "/.", "//", "pid", "ipc", ",", " ",
    "/proc", "/dev", "/opt/slurm", "/var/spool/slurmd", "\x7f", "\xff", ":", "=", "/jail", "a",
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static unsigned int state;

static unsigned int pick(unsigned int below)
{
    state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
    return (unsigned int)(((unsigned long long)(state >> 8) * below) >> 24);
}

static void insert(char *line, const char *piece, size_t at)
{
    size_t length = strlen(line), added = strlen(piece);

    if (length + added >= LINE_SIZE)
        return;
    memmove(line + at + added, line + at, length - at + 1);
    memcpy(line + at, piece, added);
}

static void mutate(char *line)
{
    size_t length = strlen(line), at = pick((unsigned int)length + 1);
    char copy[LINE_SIZE];

    switch (pick(5)) {
    case 0:
        insert(line, PIECES[pick(LENGTH(PIECES))], at);
        break;
    case 1:
        if (at < length)
            line[at] = (char)(1 + pick(255));
        break;
    case 2:
        if (at < length) {
            size_t cut = 1 + pick((unsigned int)(length - at));

            memmove(line + at, line + at + cut, length - at - cut + 1);
        }
        break;
    case 3: /* repeat a part, which makes lines long */
        snprintf(copy, sizeof(copy), "%s", line + at);
        insert(line, copy, pick((unsigned int)length + 1));
        break;
    default:
        line[at] = '\0';
    }
}

static void promise(int kept, const char *what, const char *line)
{
    if (kept)
        return;
    fprintf(stderr, "broken promise: %s\nline: %s\n", what, line);
    abort();
}

static void check(const struct jail_config *config, const char *line)
{
    promise(config->jail[0] == '/' && config->jail[1], "a jail", line);
    promise(config->spool[0] == '/' && config->spool[1], "a spool", line);
    for (size_t i = 0; i < config->bind_count; i++) {
        const char *path = config->binds[i].path;
        size_t length = strlen(path);

        promise(path[0] == '/' && length > 1 && path[length - 1] != '/', "plain paths", line);
        promise(!strstr(path, "//") && !strstr(path, "/../") && !strchr(path, ':') && !strchr(path, ' '), "plain", line);
        promise(strncmp(path, "/proc/", 6) != 0 && strcmp(path, "/dev") != 0 && strcmp(path, "/run") != 0, "own", line);
        promise(strcmp(path, config->jail) != 0 && strcmp(path, config->spool) != 0, "no claim, no spool", line);
        promise(i == 0 || strcmp(config->binds[i - 1].path, path) < 0, "sorted, once", line);
    }
}

int main(int count, char *arguments[])
{
    static struct jail_config config;
    char line[LINE_SIZE], cut[LINE_SIZE];
    unsigned long runs = 0, accepted = 0;
    struct failure failure;
    time_t end;

    if (count != 3)
        return 64;
    end = time(NULL) + atoi(arguments[1]);
    state = (unsigned int)strtoul(arguments[2], NULL, 10);
    while (time(NULL) <= end) {
        char *words[MAX_ARGUMENTS], *rest = NULL;
        int words_count = 0;

        if (runs % 64 == 0)
            snprintf(line, sizeof(line), "%s", SEEDS[pick(LENGTH(SEEDS))]);
        mutate(line);
        memcpy(cut, line, sizeof(cut));
        for (char *word = strtok_r(cut, " \t\n", &rest); word && words_count < MAX_ARGUMENTS;
             word = strtok_r(NULL, " \t\n", &rest))
            words[words_count++] = word;
        memset(&failure, 0, sizeof(failure));
        if (config_parse(&config, words_count, words, &failure) == 0) {
            accepted++;
            check(&config, line);
        } else {
            promise(failure.scope == FAILURE_NODE && failure.text[0], "a refusal has a reason", line);
        }
        runs++;
    }
    printf("%lu lines, %lu of them accepted, seed %s\n", runs, accepted, arguments[2]);
    return accepted == 0 || accepted == runs;
}
