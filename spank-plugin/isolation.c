#include "isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_MILLISECONDS 200

/*
 * The holder: lives until the other end of `lifeline` is closed, by slurmstepd's end if by nothing else. slurmstepd has
 * threads, so only system calls are safe after its fork. No signal reaches the first process of a namespace that it
 * does not handle, but KILL and STOP from outside.
 */
static _Noreturn void hold(int lifeline)
{
    struct sigaction reap = {.sa_handler = SIG_IGN};
    char byte;

    /* The step's output would never end with its pipes open here, and the user's directory would be in use. */
    if (dup2(lifeline, 0) < 0 || syscall(SYS_close_range, 1u, ~0u, 0u) < 0 || chdir("/") < 0)
        _exit(1);
    sigaction(SIGCHLD, &reap, NULL); /* from now on the kernel reaps; what has ended before: */
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        ;
    _exit(0);
}

static void close_once(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static int open_namespace(pid_t process, const char *kind)
{
    char path[64];

    if (process == 0)
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    else
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)process, kind);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int isolation_start(struct isolation *isolation, bool pid, bool ipc, struct failure *failure)
{
    unsigned long flags = (pid ? CLONE_NEWPID : 0) | (ipc ? CLONE_NEWIPC : 0);
    int lifeline[2];

    if (pipe2(lifeline, O_CLOEXEC) < 0)
        return fail(failure, "make a pipe to", "the step's namespaces");
    isolation->holder = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    if (isolation->holder == 0)
        hold(lifeline[0]);
    isolation->lifeline = lifeline[1];
    if (isolation->holder < 0) {
        fail(failure, "make namespaces of", "processes and IPC");
        isolation->holder = 0;
        close(lifeline[0]);
        isolation_stop(isolation);
        return -1;
    }
    close(lifeline[0]);
    if ((pid && ((isolation->pid_namespace = open_namespace(isolation->holder, "pid")) < 0 ||
                 (isolation->own_pid_namespace = open_namespace(0, "pid")) < 0)) ||
        (ipc && (isolation->ipc_namespace = open_namespace(isolation->holder, "ipc")) < 0)) {
        fail(failure, "open", "the step's namespaces");
        isolation_stop(isolation);
        return -1;
    }
    return 0;
}

/* The effective user of this thread alone; the C library's call would change it for slurmstepd's other threads too. */
static int set_effective_user(uid_t user)
{
    return (int)syscall(SYS_setresuid, (uid_t)-1, user, (uid_t)-1);
}

int isolation_fork(const struct isolation *isolation, bool inside, struct failure *failure)
{
    uid_t user = geteuid();
    int result;

    if (isolation->pid_namespace < 0)
        return 0;
    if (set_effective_user(0) < 0)
        return fail(failure, "become root to enter", "the step's namespace of processes");
    result = setns(inside ? isolation->pid_namespace : isolation->own_pid_namespace, CLONE_NEWPID);
    if (result < 0)
        fail(failure, inside ? "enter" : "leave", "the step's namespace of processes");
    if (set_effective_user(user) < 0)
        return fail(failure, "become the user again after entering", "the step's namespace of processes");
    return result;
}

int isolation_join(struct isolation *isolation, struct failure *failure)
{
    close_once(&isolation->lifeline);
    if (isolation->ipc_namespace >= 0 && setns(isolation->ipc_namespace, CLONE_NEWIPC) < 0)
        return fail(failure, "enter", "the step's namespace of IPC");
    return 0;
}

void isolation_stop(struct isolation *isolation)
{
    const struct timespec millisecond = {.tv_nsec = 1000 * 1000};

    close_once(&isolation->pid_namespace);
    close_once(&isolation->own_pid_namespace);
    close_once(&isolation->ipc_namespace);
    close_once(&isolation->lifeline);
    if (isolation->holder == 0)
        return;
    /* slurmstepd waits for any child: when the holder was among them, its number may be another process's by now. */
    if (waitpid(isolation->holder, NULL, WNOHANG) == 0) {
        kill(isolation->holder, SIGKILL);
        /* The holder ends when all in its namespace have ended, and have been waited for: perhaps not by now. */
        for (int i = 0; i < END_MILLISECONDS && waitpid(isolation->holder, NULL, WNOHANG) == 0; i++)
            nanosleep(&millisecond, NULL);
    }
    isolation->holder = 0;
}
