#include "image_save.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptor_message.h"
#include "mounts.h"

#define READY "ready"
#define BEGUN "g"      /* from the task, to which nothing can happen any more but its own program */
#define LAST_READS 16 /* of what a program that has ended has left in the pipe */

#define TRACKED_MILLISECONDS 60000

/* Of slurmstepd and its tasks. A user's other jobs can open the pipe, and keep it open: no end of it says anything. */
static int words[2] = {-1, -1};   /* from the program to slurmstepd */
static int handles[2] = {-1, -1}; /* from the task to slurmstepd: a descriptor of the program's process, then BEGUN */
static int tracked[2] = {-1, -1}; /* from slurmstepd to the task: a byte */
static int program = -1;          /* in the task: a socket to the program */

static void close_once(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

int image_save_prepare(void)
{
    return pipe2(words, O_CLOEXEC) < 0 || fcntl(words[0], F_SETFL, O_NONBLOCK) < 0 || pipe2(tracked, O_CLOEXEC) < 0 ||
                   socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, handles) < 0
               ? -1
               : 0;
}

int image_save_track(void)
{
    return write(tracked[1], "", 1) == 1 ? 0 : -1;
}

/*
 * Slurm forks a step's tasks first, and then puts them among the processes that it ends with the step. A child of
 * slurmstepd that a task has made before is not among them with every plugin that tracks.
 */
static int await_tracked(struct failure *failure)
{
    struct pollfd told = {.fd = tracked[0], .events = POLLIN};
    char byte;
    int result;

    close_once(&tracked[1]); /* so that the end of slurmstepd is seen */
    while ((result = poll(&told, 1, TRACKED_MILLISECONDS)) < 0 && errno == EINTR)
        ;
    return result == 1 && read(tracked[0], &byte, 1) == 1
               ? 0
               : fail_with(failure, FAILURE_JOB, "--container-save: slurmstepd has not tracked the task");
}

/* In a process of its own: never returns. It outlives the task, which is not its parent. */
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
static pid_t fork_for_parent(int *process)
{
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD | SIGCHLD, NULL, process, NULL, NULL);
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
    image_program_blot(answer); /* it has names of files, and goes into slurmd's log */
    close_once(&program);
    return fail_with(failure, FAILURE_JOB, "--container-save: %s", count > 0 ? answer : "its program has ended");
}

int image_save_start(const struct image_import *import, const char *folder, const char *path, struct failure *failure)
{
    int ends[2], process = -1;
    pid_t child;

    if (await_tracked(failure) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_job(failure, "make a socket for", "--container-save");
    if ((child = fork_for_parent(&process)) == 0) {
        close(ends[0]);
        run_saver(import, folder, path, ends[1]);
    }
    close(ends[1]);
    program = ends[0];
    if (child < 0 || descriptor_message_send(handles[1], &process, 1) < 0) {
        close_once(&program); /* which ends the program */
        close_once(&process);
        return fail_job(failure, "start the program of", "--container-save");
    }
    close_once(&process);
    return await_ready(failure);
}

int image_save_give(int root, struct failure *failure)
{
    int given[] = {mounts_clone(root, "", false, 0, 0), (int)syscall(SYS_pidfd_open, getpid(), 0)};
    int result = given[0] < 0 || given[1] < 0 || descriptor_message_send(program, given, 2) < 0
                     ? fail_job(failure, "give the container's files to", "--container-save")
                     : 0;

    close_once(&given[0]);
    close_once(&given[1]);
    return result;
}

void image_save_go(void)
{
    send(program, BEGUN, 1, MSG_NOSIGNAL); /* an error: it has ended, and slurmstepd tells */
    send(handles[1], BEGUN, 1, MSG_NOSIGNAL);
    close_once(&program);
}

struct line {
    char text[512];
    size_t length;
    bool said; /* some line before */
};

static void end_line(struct line *line, void (*say)(const char *line))
{
    line->text[line->length] = '\0';
    image_program_blot(line->text);
    if (line->length > 0) {
        say(line->text);
        line->said = true;
    }
    line->length = 0;
}

/* Pass on what is in the pipe, in lines. Returns false if there is nothing. */
static bool pass_on(struct line *line, void (*say)(const char *line))
{
    char read_now[4096];
    ssize_t count = read(words[0], read_now, sizeof(read_now));

    for (ssize_t i = 0; i < count; i++) {
        if (read_now[i] != '\n')
            line->text[line->length++] = read_now[i];
        if (read_now[i] == '\n' || line->length == sizeof(line->text) - 1)
            end_line(line, say);
    }
    return count > 0;
}

/* True if the task's own program was about to start. */
static bool has_begun(void)
{
    char byte;

    return recv(handles[0], &byte, sizeof(byte), MSG_DONTWAIT) == sizeof(byte);
}

/*
 * A program that ends by itself has said why. One that ended while the task ran, such as by the user's `kill -9 -1`, has not,
 * and slurmstepd has asked for its end already: it asks for that of any child.
 */
static void tell_of_end(int process, bool said, void (*say)(const char *line))
{
    siginfo_t end = {.si_code = 0};
    char words_of_end[100];

    if (process < 0)
        return;
    if (waitid(P_PIDFD, (id_t)process, &end, WEXITED | WNOWAIT | WNOHANG) < 0) {
        if (errno == ECHILD && !said && has_begun())
            say("the container was not saved: its program ended before the task");
        return;
    }
    if (end.si_code != CLD_KILLED && end.si_code != CLD_DUMPED)
        return;
    snprintf(words_of_end, sizeof(words_of_end), "the container was not saved: its program was ended by signal %d%s",
             end.si_status, end.si_status == SIGKILL ? " (memory of the job?)" : "");
    say(words_of_end);
}

void image_save_await(void (*say)(const char *line))
{
    struct line line = {.length = 0};
    struct pollfd either[] = {{.fd = descriptor_message_receive(handles[0]), .events = POLLIN}, {.fd = words[0], .events = POLLIN}};

    while (either[0].fd >= 0 && (poll(either, 2, -1) >= 0 || errno == EINTR) && !either[0].revents)
        if (!pass_on(&line, say) && either[1].revents & POLLHUP)
            either[1].fd = -1; /* it has closed the pipe, and goes on */
    for (int i = 0; i < LAST_READS && pass_on(&line, say); i++)
        ;
    end_line(&line, say);
    tell_of_end(either[0].fd, line.said, say);
    close_once(&either[0].fd);
}
