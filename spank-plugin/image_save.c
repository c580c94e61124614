#include "image_save.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mounts.h"

#define READY "ready"

static int words[2] = {-1, -1}; /* from the program to slurmstepd */
static int program = -1;        /* in the task: a socket to the program */

static void close_once(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

int image_save_prepare(void)
{
    return pipe2(words, O_CLOEXEC);
}

/* In a process of its own: never returns. */
static void run_saver(const struct image_import *import, const char *folder, const char *path, int task)
{
    char *const arguments[] = {(char *)SAVER, strdup(folder), strdup(path), NULL};
    struct failure failure = {FAILURE_NONE, ""};

    image_program_become(import, arguments, task, words[1], 0, &failure);
    if (send(task, failure.text, strlen(failure.text), MSG_NOSIGNAL) < 0)
        _exit(2);
    _exit(1);
}

/* A child of slurmstepd, not of the task, whose own program would find a child that it has not made, and wait for it. */
static pid_t fork_for_parent(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
}

static int await_ready(struct failure *failure)
{
    char answer[300];
    ssize_t count;

    while ((count = recv(program, answer, sizeof(answer) - 1, 0)) < 0 && errno == EINTR)
        ;
    answer[count > 0 ? count : 0] = '\0';
    if (strcmp(answer, READY) == 0)
        return 0;
    close_once(&program);
    return fail_with(failure, FAILURE_JOB, "--container-save: %s", count > 0 ? answer : "its program has ended");
}

int image_save_start(const struct image_import *import, const char *folder, const char *path, struct failure *failure)
{
    int ends[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_job(failure, "make a socket for", "--container-save");
    if ((child = fork_for_parent()) == 0) {
        close(ends[0]);
        run_saver(import, folder, path, ends[1]);
    }
    close(ends[1]);
    program = ends[0];
    if (child > 0)
        return await_ready(failure);
    close_once(&program);
    return fail_job(failure, "start the program of", "--container-save");
}

static int send_descriptors(int tree, int task)
{
    char byte = 0;
    struct iovec content = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control = {.space = {0}};
    struct msghdr message = {
        .msg_iov = &content, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
    const int descriptors[] = {tree, task};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(descriptors));
    memcpy(CMSG_DATA(&control.header), descriptors, sizeof(descriptors));
    return sendmsg(program, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int image_save_give(int root, struct failure *failure)
{
    int tree = mounts_clone(root, "", false, 0, 0);
    int task = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int result = tree < 0 || task < 0 || send_descriptors(tree, task) < 0
                     ? fail_job(failure, "give the container's files to", "--container-save")
                     : 0;

    close_once(&tree);
    close_once(&task);
    close_once(&program);
    return result;
}

void image_save_await(void (*say)(const char *line))
{
    FILE *output;
    char *line = NULL;
    size_t size = 0;

    close_once(&words[1]); /* all tasks have their own by now, and it ends with them */
    if (words[0] < 0 || !(output = fdopen(words[0], "r")))
        return;
    while (getline(&line, &size, output) > 0) {
        line[strcspn(line, "\n")] = '\0';
        image_program_blot(line);
        say(line);
    }
    free(line);
    fclose(output);
    words[0] = -1;
}
