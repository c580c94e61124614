#include "container_entrypoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 256
#define MAX_BYTES (1024 * 1024) /* of variables; the kernel starts no program with many more */

/* In memory: a process that the entry point leaves may write on, and neither blocks nor dies of it. */
struct output {
    int printed;
    int variables; /* inherited by the entry point */
};

static size_t cut_words(const struct image_settings *settings, char *words[MAX_WORDS + 3])
{
    size_t count = 0;

    for (size_t at = 0; at < settings->entrypoint_size; at += strlen(settings->entrypoint + at) + 1) {
        if (count == MAX_WORDS)
            return 0;
        words[count++] = settings->entrypoint + at;
    }
    return count;
}

/* In a process of its own: never returns. */
static void become_entrypoint(char *const words[], char **environment, const struct output *output, bool log)
{
    const int printed = log ? STDERR_FILENO : output->printed;
    int nothing = openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);

    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(printed, STDOUT_FILENO) >= 0 &&
        dup2(printed, STDERR_FILENO) >= 0) {
        environ = environment; /* for its PATH */
        execvp(words[0], words);
    }
    dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Put the last line that it has printed into `line`, without what a terminal may take for a command. */
static void find_last_line(int printed, char line[256])
{
    const off_t end = lseek(printed, 0, SEEK_END);
    ssize_t count = pread(printed, line, 255, end > 255 ? end - 255 : 0);
    char *last;

    line[count > 0 ? count : 0] = '\0';
    for (size_t length = strlen(line); length > 0 && line[length - 1] == '\n';)
        line[--length] = '\0';
    if ((last = strrchr(line, '\n')))
        memmove(line, last + 1, strlen(last));
    for (char *byte = line; *byte; byte++)
        if (*byte < ' ' || *byte > '~')
            *byte = '?';
}

static int await(pid_t child, const char *name, int printed, struct failure *failure)
{
    char line[256];
    int status;

    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return fail_job(failure, "wait for", "the image's entry point");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    find_last_line(printed, line);
    if (WIFSIGNALED(status))
        return fail_with(failure, FAILURE_JOB, "the image's entry point %.100s was ended by signal %d. %s", name,
                         WTERMSIG(status), line);
    return fail_with(failure, FAILURE_JOB, "the image's entry point %.100s has failed with exit code %d. %s", name,
                     WEXITSTATUS(status), line);
}

/* Take what its command has written in place of the variables of the image, which are among them. */
static int take_variables(struct image_settings *settings, int written, const char *name, struct failure *failure)
{
    struct stat status;
    char *content;

    if (fstat(written, &status) < 0 || status.st_size > MAX_BYTES)
        return fail_with(failure, FAILURE_JOB, "the image's entry point %.100s has set more than %d bytes of variables",
                         name, MAX_BYTES);
    if (status.st_size == 0)
        return fail_with(failure, FAILURE_JOB,
                         "the image's entry point %.100s does not run its arguments, as one that sets variables for the "
                         "task has to (exec \"$@\"). Start the job without --container-entrypoint", name);
    if (!(content = calloc(1, (size_t)status.st_size + 1)) || pread(written, content, (size_t)status.st_size, 0) < 0) {
        free(content);
        return fail_job(failure, "read the variables of", "the image's entry point");
    }
    free(settings->variables);
    settings->variables = content;
    settings->size = (size_t)status.st_size;
    return 0;
}

static int run(struct image_settings *settings, char *const words[], char **environment, const struct output *output,
               bool log, struct failure *failure)
{
    pid_t child = fork();

    if (child == 0)
        become_entrypoint(words, environment, output, log);
    if (child < 0)
        return fail_job(failure, "start", "the image's entry point");
    return await(child, words[0], output->printed, failure) < 0
               ? -1
               : take_variables(settings, output->variables, words[0], failure);
}

int container_entrypoint_run(struct image_settings *settings, char *program, char **environment, bool log,
                             struct failure *failure)
{
    char *words[MAX_WORDS + 3], descriptor[16];
    struct output output = {memfd_create("printed", MFD_CLOEXEC), memfd_create("variables", 0)};
    size_t count = cut_words(settings, words);
    int result = 0;

    if (count == 0 && settings->entrypoint_size > 0)
        result = fail_with(failure, FAILURE_JOB, "the image's entry point has more than %d words", MAX_WORDS);
    else if (output.printed < 0 || output.variables < 0)
        result = fail_job(failure, "make memory for", "the image's entry point");
    else if (count > 0) {
        snprintf(descriptor, sizeof(descriptor), "%d", output.variables);
        words[count] = program;
        words[count + 1] = descriptor;
        words[count + 2] = NULL;
        result = run(settings, words, environment, &output, log, failure);
    }
    close(output.printed);
    close(output.variables);
    return result;
}
