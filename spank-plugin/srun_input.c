#include "srun_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (128 * 1024)
#define MAX_ARGUMENTS 4096

const char *srun_input(char *const arguments[], size_t count, const char *inherited)
{
    const char *input = inherited;

    for (size_t i = 1; i < count; i++) {
        const char *argument = arguments[i];

        if (strncmp(argument, "--input=", 8) == 0)
            input = argument + 8;
        else if (strncmp(argument, "-i", 2) == 0 && argument[2] != '\0')
            input = argument + 2;
        else if ((strcmp(argument, "-i") == 0 || strcmp(argument, "--input") == 0) && i + 1 < count)
            input = arguments[++i];
    }
    return input;
}

/* True for a pattern with the number of a task. */
static bool is_of_tasks(const char *input)
{
    for (const char *mark = input; (mark = strchr(mark, '%'));) {
        mark++;
        mark += strspn(mark, "0123456789");
        if (*mark == 't')
            return true;
    }
    return false;
}

int srun_input_prepare(const char *input, struct failure *failure)
{
    struct stat status;
    int idle[2];

    if (!input)
        return 0;
    if (!is_of_tasks(input)) {
        if (stat(input, &status) == 0 && S_ISDIR(status.st_mode))
            return fail_with(failure, FAILURE_JOB, "standard input %.300s is a directory. Give a file by --input", input);
        return 0;
    }
    /* the other end stays open */
    if (pipe2(idle, O_CLOEXEC) < 0 || dup2(idle[0], STDIN_FILENO) < 0)
        return fail_job(failure, "replace", "srun's standard input");
    return idle[0] == STDIN_FILENO ? 0 : close(idle[0]);
}

int srun_input_prepare_own(size_t program, struct failure *failure)
{
    static char text[MAX_BYTES + 1];
    static char *arguments[MAX_ARGUMENTS];
    size_t count = 0;
    ssize_t length;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return fail_job(failure, "open", "/proc/self/cmdline");
    length = read(file, text, MAX_BYTES);
    close(file);
    for (ssize_t start = 0; start < length && count < MAX_ARGUMENTS; start += (ssize_t)strlen(text + start) + 1)
        arguments[count++] = text + start;
    return srun_input_prepare(srun_input(arguments, count > program ? count - program : 0, getenv("SLURM_STDINMODE")),
                              failure);
}
