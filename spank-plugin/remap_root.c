#include "remap_root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seccomp_filter.h"

#define OPTION "--container-remap-root: "

static pid_t mapper;
static int mapper_socket = -1; /* in the task */

static int write_once(int directory, const char *name, const char *text)
{
    int file = openat(directory, name, O_WRONLY | O_CLOEXEC);
    ssize_t count = file < 0 ? -1 : write(file, text, strlen(text));

    if (file >= 0)
        close(file);
    return count < 0 ? -1 : 0;
}

/* In a process of its own, as root: never returns. */
static _Noreturn void map(int task, int socket, const struct person *person)
{
    char users[32], groups[32], byte;
    int error = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    snprintf(users, sizeof(users), "0 %u 1", person->user);
    snprintf(groups, sizeof(groups), "0 %u 1", person->group);
    if (recv(socket, &byte, sizeof(byte), 0) != sizeof(byte))
        _exit(0); /* the task has ended */
    /* A user who could leave groups would pass over modes that give a group less than others. */
    if (write_once(task, "setgroups", "deny") < 0 || write_once(task, "uid_map", users) < 0 ||
        write_once(task, "gid_map", groups) < 0)
        error = errno;
    send(socket, &error, sizeof(error), MSG_NOSIGNAL);
    _exit(0);
}

int remap_root_prepare(const struct person *person, struct failure *failure)
{
    /* By a descriptor: with process IDs of its own, a task has another number in this /proc. */
    int task = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC), ends[2];

    if (task < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        fail_job(failure, OPTION "open", "/proc/self");
        if (task >= 0)
            close(task);
        return -1;
    }
    if ((mapper = fork()) == 0) {
        close(ends[0]);
        map(task, ends[1], person);
    }
    close(task);
    close(ends[1]);
    mapper_socket = ends[0];
    return mapper < 0 ? fail_job(failure, OPTION "start", "the process that maps the user") : 0;
}

int remap_root_enter(struct failure *failure)
{
    int error = EPIPE; /* it has ended */

    if (unshare(CLONE_NEWUSER) < 0)
        return fail_job(failure, OPTION "make", "a user namespace (do the machine's sysctls allow them?)");
    if (send(mapper_socket, "", 1, MSG_NOSIGNAL) == 1 && recv(mapper_socket, &error, sizeof(error), 0) < 0)
        error = errno;
    close(mapper_socket);
    while (waitpid(mapper, NULL, 0) < 0 && errno == EINTR)
        ;
    errno = error;
    if (error != 0)
        return fail_job(failure, OPTION "map to root", "the user");
    return seccomp_filter_pretend() < 0 ? fail_job(failure, OPTION "install", "the filter of changes of owners") : 0;
}
