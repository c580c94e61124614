#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TESTS 256
#define TEST_SECONDS 60 /* less than what starts this program waits: a test that hangs is named */

static struct {
    const char *name;
    void (*function)(void);
} tests[MAX_TESTS];
static size_t test_count;

void test_add(const char *name, void (*function)(void))
{
    if (test_count == MAX_TESTS)
        abort();
    tests[test_count].name = name;
    tests[test_count++].function = function;
}

void test_check(bool holds, const char *condition, const char *file, int line)
{
    int error = errno;

    if (holds)
        return;
    fprintf(stderr, "%s:%d: not so: %s (errno: %s)\n", file, line, condition, strerror(error));
    _exit(1);
}

void test_check_says(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part))
        return;
    fprintf(stderr, "%s:%d: \"%s\" does not contain \"%s\"\n", file, line, text, part);
    _exit(1);
}

int test_await(int child)
{
    int status;

    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int test_in_child(int (*function)(void *), void *argument)
{
    pid_t child = fork();

    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
            abort();
        _exit(function(argument));
    }
    return child < 0 ? -1 : test_await(child);
}

/* A process of the test's own: a test that takes too long ends, and what test_in_child() made ends with it. */
static bool passes(const char *name, void (*function)(void))
{
    pid_t child = fork();
    int code;

    if (child == 0) {
        alarm(TEST_SECONDS);
        function();
        exit(0); /* runs the leak check */
    }
    code = child > 0 ? test_await(child) : -1;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ; /* what a task has made a child of its parent, as image_save.c does */
    if (code == 128 + SIGALRM)
        fprintf(stderr, "%s: still running after %d seconds\n", name, TEST_SECONDS);
    return code == 0;
}

int main(int count, char *arguments[])
{
    int failed = 0;

    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < test_count; i++) {
        bool ok;

        if (count > 1 && !strstr(tests[i].name, arguments[1]))
            continue;
        ok = passes(tests[i].name, tests[i].function);
        printf("%s %s\n", ok ? "ok    " : "FAILED", tests[i].name);
        failed += !ok;
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
