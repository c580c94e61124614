#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../container_entrypoint.h"
#include "harness.h"

static struct image_settings settings;
static struct failure failure;

/* The program that the tests' make has built next to them. */
static char *program(void)
{
    static char path[PATH_MAX + 32];
    char own[PATH_MAX] = "";

    CHECK(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
    snprintf(path, sizeof(path), "%s/../give-environment", dirname(own));
    return path;
}

/* Run an entry point whose words are these, with a zero byte after every one. */
static int run_words(const char *words, size_t size, bool log)
{
    static char *VARIABLES[] = {"PATH=/usr/bin:/bin", "FIRST=1", NULL};

    settings.entrypoint = (char *)words;
    settings.entrypoint_size = size;
    return container_entrypoint_run(&settings, program(), VARIABLES, log, &failure);
}

#define RUN(script, log) run_words("sh\0-c\0" script "\0sh", sizeof("sh\0-c\0" script "\0sh"), log)

static bool has(const char *variable)
{
    for (size_t at = 0; at < settings.size; at += strlen(settings.variables + at) + 1)
        if (strcmp(settings.variables + at, variable) == 0)
            return true;
    return false;
}

TEST(a_task_gets_the_variables_that_the_entry_point_has_set)
{
    CHECK(RUN("echo a banner; export SECOND='two\nlines'; FIRST=changed; exec \"$@\"", false) == 0);
    CHECK(has("FIRST=changed") && has("SECOND=two\nlines") && has("PATH=/usr/bin:/bin"));
}

TEST(an_entry_point_that_leaves_no_variable_is_none_that_fails)
{
    CHECK(RUN("exec env -i \"$@\"", false) == 0);
    CHECK(!has("FIRST=1"));
}

TEST(an_image_without_an_entry_point_changes_nothing)
{
    settings.variables = strdup("IMAGE=1");
    settings.size = sizeof("IMAGE=1");
    CHECK(run_words("", 0, false) == 0);
    CHECK(has("IMAGE=1"));
}

TEST(an_entry_point_that_does_not_run_its_arguments_is_told)
{
    CHECK(RUN("echo ready", false) == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "entry point sh does not run its arguments");
}

TEST(an_entry_point_that_fails_is_told_with_its_last_words)
{
    CHECK(RUN("echo first; printf 'no \\033[1mlicence\\n' >&2; exit 3", false) == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "entry point sh has failed with exit code 3. no ?[1mlicence");
    CHECK(RUN("kill -9 $$", false) == -1);
    CHECK_SAYS(failure.text, "was ended by signal 9");
    CHECK(run_words("/missing", sizeof("/missing"), false) == -1);
    CHECK_SAYS(failure.text, "exit code 127. /missing: No such file or directory");
}

TEST(an_entry_point_reads_nothing_of_the_tasks_input)
{
    CHECK(RUN("INPUT=$(cat); export INPUT; exec \"$@\"", false) == 0);
    CHECK(has("INPUT="));
}

/* What reaches the standard error of the task. */
static const char *shown(bool log)
{
    static char text[256];
    int seen = memfd_create("seen", 0), kept = dup(STDERR_FILENO);
    ssize_t count;

    CHECK(dup2(seen, STDERR_FILENO) >= 0);
    CHECK(RUN("echo a banner; exec \"$@\"", log) == 0);
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
    count = pread(seen, text, sizeof(text) - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    return text;
}

TEST(what_an_entry_point_prints_is_shown_if_that_is_wanted)
{
    CHECK(strcmp(shown(false), "") == 0);
    CHECK(strcmp(shown(true), "a banner\n") == 0);
}

TEST(a_process_that_the_entry_point_leaves_is_not_waited_for)
{
    pid_t left = 0;

    CHECK(RUN("sleep 600 & export LEFT=$!; exec \"$@\"", false) == 0);
    for (size_t at = 0; at < settings.size; at += strlen(settings.variables + at) + 1)
        if (strncmp(settings.variables + at, "LEFT=", 5) == 0)
            left = atoi(settings.variables + at + 5);
    CHECK(left > 0 && kill(left, SIGKILL) == 0);
}

TEST(more_variables_than_a_program_can_have_are_refused)
{
    CHECK(RUN("i=0; while [ $i -lt 12 ]; do \"$@\"; i=$((i+1)); export BIG$i=$(head -c 100000 /dev/zero | tr '\\0' x); done",
              false) == -1);
    CHECK_SAYS(failure.text, "has set more than 1048576 bytes");
}

TEST(more_words_than_any_entry_point_has_are_refused)
{
    static char words[1024];

    CHECK(run_words(words, sizeof(words), false) == -1);
    CHECK_SAYS(failure.text, "more than 256 words");
}
