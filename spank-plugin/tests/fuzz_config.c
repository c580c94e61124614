/*
 * Fuzzing of the configuration parser: what is accepted of mutated lines has to keep the promises of config.h.
 *
 *   fuzz_config SECONDS SEED
 */
#include <stdio.h>
#include <string.h>

#include "../config.h"
#include "fuzz.h"

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

static void check(const struct jail_config *config, const char *line)
{
    fuzz_promise(config->jail[0] == '/' && config->jail[1], "a jail", line);
    fuzz_promise(config->spool[0] == '/' && config->spool[1], "a spool", line);
    for (size_t i = 0; i < config->bind_count; i++) {
        const char *path = config->binds[i].path;
        size_t length = strlen(path);

        fuzz_promise(path[0] == '/' && length > 1 && path[length - 1] != '/', "plain paths", line);
        fuzz_promise(!strstr(path, "//") && !strstr(path, "/../") && !strchr(path, ':') && !strchr(path, ' '), "plain", line);
        fuzz_promise(strncmp(path, "/proc/", 6) != 0 && strcmp(path, "/dev") != 0 && strcmp(path, "/run") != 0, "own", line);
        fuzz_promise(strcmp(path, config->jail) != 0 && strcmp(path, config->spool) != 0, "no claim, no spool", line);
        fuzz_promise(i == 0 || strcmp(config->binds[i - 1].path, path) < 0, "sorted, once", line);
    }
}

int main(int count, char *arguments[])
{
    static struct jail_config config;
    char line[LINE_SIZE], cut[LINE_SIZE];
    unsigned long runs = 0, accepted = 0;
    struct failure failure;

    fuzz_begin(count, arguments);
    while (fuzz_goes_on()) {
        char *words[MAX_ARGUMENTS], *rest = NULL;
        int words_count = 0;

        if (runs % 64 == 0)
            snprintf(line, sizeof(line), "%s", SEEDS[fuzz_pick(FUZZ_LENGTH(SEEDS))]);
        fuzz_mutate(line, sizeof(line), PIECES, FUZZ_LENGTH(PIECES));
        memcpy(cut, line, sizeof(cut));
        for (char *word = strtok_r(cut, " \t\n", &rest); word && words_count < MAX_ARGUMENTS;
             word = strtok_r(NULL, " \t\n", &rest))
            words[words_count++] = word;
        memset(&failure, 0, sizeof(failure));
        if (config_parse(&config, words_count, words, &failure) == 0) {
            accepted++;
            check(&config, line);
        } else {
            fuzz_promise(failure.scope == FAILURE_NODE && failure.text[0], "a refusal has a reason", line);
        }
        runs++;
    }
    printf("%lu lines, %lu of them accepted, seed %s\n", runs, accepted, arguments[2]);
    return accepted == 0 || accepted == runs;
}
