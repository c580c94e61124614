#include "start_deadline.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>

static timer_t timer;
static bool running;

int start_deadline_set(int seconds, struct failure *failure)
{
    struct sigevent kill = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    const struct itimerspec once = {.it_value.tv_sec = seconds};

    if (timer_create(CLOCK_MONOTONIC, &kill, &timer) < 0)
        return fail(failure, "make", "a timer");
    running = true;
    return timer_settime(timer, 0, &once, NULL) < 0 ? fail(failure, "start", "a timer") : 0;
}

void start_deadline_lift(void)
{
    if (running)
        timer_delete(timer);
    running = false;
}
