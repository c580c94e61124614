#include "start_signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

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
}
