/* The variables of a node: those of a file, for jobs that do not have them. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../node_environment.h"
#include "harness.h"

static char given[8192]; /* what a job was given, as in the file */

static int add(void *job, const char *name, const char *value)
{
    size_t length = strlen(given);

    if (strcmp(name, job) == 0)
        return -1;
    snprintf(given + length, sizeof(given) - length, "%s=%s\n", name, value);
    return 0;
}

/* Give the variables of a file with this text. */
static int give(const char *text, char *refused, struct failure *failure)
{
    int file = memfd_create("environment", 0);
    ssize_t length = (ssize_t)strlen(text);
    char path[64];
    int result;

    CHECK(file >= 0 && write(file, text, (size_t)length) == length);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    given[0] = '\0';
    failure->scope = FAILURE_NONE;
    result = node_environment_give(path, add, refused, failure);
    close(file);
    return result;
}

TEST(each_line_is_a_variable)
{
    static const char TEXT[] = "NCCL_DEBUG=INFO\nNCCL_IB_HCA==mlx5_0:1,mlx5_1:1\nEMPTY=\nODD= a 'b' \"$c\" %s\n";
    struct failure failure;

    CHECK(give(TEXT, "", &failure) == 0);
    CHECK(strcmp(given, TEXT) == 0);
    CHECK(give("", "", &failure) == 0 && given[0] == '\0');
    CHECK(give("LAST=line", "", &failure) == 0 && strcmp(given, "LAST=line\n") == 0);
}

TEST(a_long_value_arrives_whole)
{
    static char text[5000] = "LONG=";
    struct failure failure;

    memset(text + 5, 'x', sizeof(text) - 7);
    text[sizeof(text) - 2] = '\n';
    CHECK(give(text, "", &failure) == 0);
    CHECK(strcmp(given, text) == 0);
}

TEST(a_node_without_the_file_gives_nothing)
{
    struct failure failure = {FAILURE_NONE, ""};

    given[0] = '\0';
    CHECK(node_environment_give("/nonexistent/environment", add, "", &failure) == 0);
    CHECK(given[0] == '\0' && failure.scope == FAILURE_NONE);
}

TEST(what_is_no_variable_is_reported)
{
    struct failure failure;

    CHECK(give("no variable\n", "", &failure) < 0);
    CHECK(failure.scope == FAILURE_JOB && strstr(failure.text, "\"no variable\" is not NAME=VALUE"));
    CHECK(give("=value\n", "", &failure) < 0);
    CHECK(give("A=1\nB=2\nC=3\n", "B", &failure) < 0);
    CHECK(strstr(failure.text, "B cannot be set") && strcmp(given, "A=1\n") == 0);
}
