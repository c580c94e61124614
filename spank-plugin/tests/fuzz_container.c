/*
 * Fuzzing of what reads users' bytes before a container starts: its options, its variables, and what an image says of
 * itself. What is accepted has to keep the promises of container.h.
 *
 *   fuzz_container SECONDS SEED
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../container.h"
#include "../image_settings.h"
#include "fuzz.h"

#define LINE_SIZE 12000

#define TEN "/a:/b,/c,/d:/e:ro,/f,/g,/h,/i,/j,/k,/l,"

static const char *const SEEDS[] = {
    "docker://registry.example:5000/team/image:tag@sha256:0123", "/data/image.sqsh", "name:no_exec", "plain_name-1.2",
    "/data:/mnt:ro+rbind,/home/alice/x:/x,/y", "/work/dir", "HOME,LD_LIBRARY_PATH,A", "yes", "/out/file.sqsh",
    TEN TEN TEN TEN TEN TEN,
};
static const char *const PIECES[] = {
    ":", ",", "+", "/", "//", "..", "ro", "rw", "rbind", "auto", "create", "exec", "=", "@", "#", "docker://", "-", ".",
    "\x1b", "\x7f", "\xff", "\n", " ", "yes", "off", ":,", "/a:/b:ro,", "%s", "SLURM_", "PATH=", TEN,
};

static char variable[LINE_SIZE];

static const char *get(void *job, const char *name)
{
    (void)job;
    return strlen(name) % 3 == fuzz_pick(3) ? variable : NULL;
}

static int set(void *job, const char *name, const char *value)
{
    fuzz_promise(name[0] != '\0' && !strchr(name, '=') && strlen(name) < 256, "a variable has a name", name);
    fuzz_promise(!container_keeps(job, name), "the job's own variables stay", name);
    return strlen(value) > LINE_SIZE ? -1 : 0;
}

static int is_one_line(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return 0;
    return 1;
}

static void check(const struct container *container, const char *line)
{
    const char *name = container->name;

    fuzz_promise(is_one_line(container->image) && is_one_line(container->save) && is_one_line(container->names), "one line",
                 line);
    fuzz_promise(name[0] != '.' && name[0] != '-' && !strchr(name, '/') && !strchr(name, ':'), "the name of a folder", line);
    fuzz_promise(container->workdir[0] == '\0' || container->workdir[0] == '/', "an absolute working directory", line);
    fuzz_promise(container->mount_count <= CONTAINER_MAX_MOUNTS, "as many mounts as there is room for", line);
    for (size_t i = 0; i < container->mount_count; i++) {
        const struct container_mount *mount = &container->mounts[i];

        fuzz_promise(mount->source[0] == '/' && mount->target[0] == '/', "absolute mounts", line);
        fuzz_promise(is_one_line(mount->source) && is_one_line(mount->target), "mounts of one line", line);
        fuzz_promise(!strpbrk(mount->source, ":,") && !strpbrk(mount->target, ":,"), "mounts are cut", line);
    }
}

/* Zero bytes at random places, and a buffer of the exact size, so that the sanitizer sees a byte too many. */
static void give(const struct container *container, const char *line, struct failure *failure)
{
    struct image_settings settings = {.size = strlen(line)};

    if (!(settings.variables = malloc(settings.size + 1)))
        return;
    memcpy(settings.variables, line, settings.size + 1);
    for (size_t cuts = fuzz_pick(8); cuts && settings.size; cuts--)
        settings.variables[fuzz_pick((unsigned int)settings.size)] = '\0';
    image_settings_give(&settings, container, set, (void *)container, failure);
    free(settings.variables);
}

int main(int count, char *arguments[])
{
    static struct container container;
    char line[LINE_SIZE];
    unsigned long runs = 0, accepted = 0;
    size_t words = 0;

    while (CONTAINER_WORDS[words].name)
        words++;
    fuzz_begin(count, arguments);
    while (fuzz_goes_on()) {
        const struct container_word *word = &CONTAINER_WORDS[fuzz_pick((unsigned int)words)];
        struct failure failure = {0};

        if (runs % 32 == 0)
            snprintf(line, sizeof(line), "%s", SEEDS[fuzz_pick(FUZZ_LENGTH(SEEDS))]);
        if (runs % 4 == 0) /* until then options add up */
            memset(&container, 0, sizeof(container));
        fuzz_mutate(line, sizeof(line), PIECES, FUZZ_LENGTH(PIECES));
        snprintf(variable, sizeof(variable), "%s", line);
        if (container_take(&container, word, word->argument ? line : NULL, &failure) == 0 &&
            container_complete(&container, get, NULL, &failure) == 0) {
            accepted++;
            check(&container, line);
            give(&container, line, &failure);
        } else {
            fuzz_promise(failure.scope == FAILURE_JOB && failure.text[0], "a refusal is the job's, with a reason", line);
            memset(&container, 0, sizeof(container));
        }
        runs++;
    }
    printf("%lu options, %lu of them accepted, seed %s\n", runs, accepted, arguments[2]);
    return accepted == 0 || accepted == runs;
}
