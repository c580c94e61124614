#include "start_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ACCEPTED_MILLISECONDS 2000

static int accepted[2] = {-1, -1}; /* a byte for every task that accepts signals */

int start_signals_prepare(void)
{
    return pipe2(accepted, O_CLOEXEC | O_NONBLOCK);
}

/* Not QUIT: it would write slurmstepd's memory, with the cluster's secrets, into a file in the job's folder. */
static bool ends(int signal)
{
    return signal == SIGHUP || signal == SIGINT || signal == SIGTERM;
}

void start_signals_accept(void)
{
    struct sigaction action;

    prctl(PR_SET_NAME, "starting-task", 0, 0, 0);
    for (int signal = 1; signal < NSIG; signal++) {
        if (sigaction(signal, NULL, &action) < 0 || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
            continue; /* which the program inherits: it finds handlers as SIG_DFL in any case */
        if (ends(signal))
            action = (struct sigaction){.sa_handler = SIG_DFL};
        else
            action.sa_flags |= SA_RESTART;
        sigaction(signal, &action, NULL);
    }
    while (write(accepted[1], "", 1) < 0 && errno == EINTR)
        ;
}

void start_signals_await(void)
{
    struct pollfd readable = {.fd = accepted[0], .events = POLLIN};
    char byte;
    int result;

    if (accepted[0] < 0)
        return;
    while ((result = poll(&readable, 1, ACCEPTED_MILLISECONDS)) < 0 && errno == EINTR)
        ;
    if (result == 1 && read(accepted[0], &byte, sizeof(byte)) == sizeof(byte))
        return;
    close(accepted[0]); /* other tasks are not waited for, or many that have ended would hold up the step for minutes */
    accepted[0] = -1;
}
